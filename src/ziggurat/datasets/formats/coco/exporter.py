"""Export to COCO: ``instances_<split>.json`` beside the images."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.formats.coco.content import EXACT_BOX, KEY_FIELD
from ziggurat.datasets.formats.shared.detection_export import DetectionExport, PlacedSample, SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import mask_area, read_run_lengths
from ziggurat.records.schema import Schema

__all__ = ["export_coco"]

_IN_MEMORY_BYTES: Final = 32 << 20  # annotations beyond this wait on disk, as a file lists its images first
_OWN_FIELDS: Final = frozenset(("id", "image_id", "category_id", "bbox", "segmentation", "area", "iscrowd", EXACT_BOX))


def export_coco(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection as COCO.

    Images lie at their keys. Categories keep their ids where they came from COCO; further fields of objects, also
    those of other formats, are written as further fields of annotations.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = DetectionExport(dataset, folder, "coco")
    categories = _categories(dataset.schema)
    for split in dataset.splits:
        _write_split(export, split, categories)
    return export.report("Images are numbered anew.")


def _write_split(export: DetectionExport, split: str, categories: Sequence[Mapping[str, Any]]) -> None:
    """Write images and annotations as they come: the annotations wait in a temporary file."""
    target = AtomicFile(export.folder / f"instances_{split}.json")
    try:
        with (
            storage_errors(target.final),
            target.path.open("w", encoding="utf-8") as file,
            tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+", encoding="utf-8") as waiting,
        ):
            file.write('{"images": [')
            ids = _Ids()
            for number, sample in enumerate(export.samples(split), 1):
                file.write(f"{',' if number > 1 else ''}\n{_json(_image(number, sample))}")
                _write_annotations(export, number, sample, categories, ids, waiting)
            file.write('\n],\n"annotations": [')
            waiting.seek(0)
            shutil.copyfileobj(waiting, file)
            file.write(f'\n],\n"categories": {_json(categories)}}}\n')
        target.publish()
    except BaseException:
        target.discard()
        raise


def _write_annotations(
    export: DetectionExport,
    number: int,
    sample: PlacedSample,
    categories: Sequence[Mapping[str, Any]],
    ids: _Ids,
    file: IO[str],
) -> None:
    left_out = 0
    for each in sample.objects:
        if each.class_number < 0:
            left_out += 1
            continue
        if each.mask is not None and each.polygons:
            export.lose("outlines of objects that have run lengths too")
        fields = {
            "id": ids.new(each.details.get("id")),
            "image_id": number,
            "category_id": categories[each.class_number]["id"],
            **_annotation(each),
        }
        file.write(f"{',' if ids.count > 1 else ''}\n{_json(fields)}")
    export.leave_out(sample.key, left_out, "no-class", "regions without a class")


class _Ids:
    """Gives each annotation its own id: that which it had, where no other has it."""

    def __init__(self) -> None:
        self.count = 0
        self._used: set[int] = set()
        self._next = 1

    def new(self, wanted: Any) -> int:
        self.count += 1
        if type(wanted) is not int or wanted in self._used:
            while self._next in self._used:
                self._next += 1
            wanted = self._next
        self._used.add(wanted)
        return wanted


def _image(number: int, sample: PlacedSample) -> dict[str, Any]:
    width, height = sample.size
    fields = {"id": number, "file_name": sample.path, "width": width, "height": height}
    return fields if sample.path == sample.key else {**fields, KEY_FIELD: sample.key}


def _annotation(each: ImageObject) -> dict[str, Any]:
    left, top, right, bottom = each.box
    written = each.details.get("bbox")
    if not (isinstance(written, list) and len(written) == 4 and _corners(written) == tuple(each.box)):
        written = [left, top, _extent(left, right), _extent(top, bottom)]
    fields: dict[str, Any] = {"bbox": written}
    if _corners(written) != tuple(each.box):
        fields[EXACT_BOX] = list(each.box)
    segmentation = dict(each.mask) if each.mask is not None else [list(polygon) for polygon in each.polygons]
    fields |= {"segmentation": segmentation, "area": _area(each), "iscrowd": int(each.crowd)}
    if each.difficult:
        fields["difficult"] = True
    return {**fields, **{name: value for name, value in each.details.items() if name not in _OWN_FIELDS}}


def _corners(box: Sequence[float]) -> tuple[float, ...]:
    return (box[0], box[1], box[0] + box[2], box[1] + box[3])


def _extent(start: float, end: float) -> float:
    """Return the width that gives ``end`` exactly when it is added to ``start``, where there is one."""
    width = end - start
    near = (width, math.nextafter(width, math.inf), math.nextafter(width, -math.inf))
    return next((each for each in near if start + each == end), width)


def _area(each: ImageObject) -> float:
    """Return the area in square pixels: as the source says it while it can be true, else of mask, outlines or box."""
    said = each.details.get("area")
    box_area = each.width_px * each.height_px
    if isinstance(said, int | float) and 0 <= said <= box_area * 1.01 + 1:
        return said
    mask = None if each.mask is None else read_run_lengths(each.mask)
    if mask is not None:
        return mask_area(mask)
    if not each.polygons:
        return box_area
    return sum(_polygon_area(polygon) for polygon in each.polygons)


def _polygon_area(polygon: Sequence[float]) -> float:
    x, y = polygon[::2], polygon[1::2]
    return abs(sum(x[i - 1] * y[i] - x[i] * y[i - 1] for i in range(len(x)))) / 2


def _categories(schema: Schema) -> list[dict[str, Any]]:
    """Return the categories by class number: as COCO's own file had them where they are still the same."""
    said = schema.details.get("coco", {}).get("categories", [])
    same = len(said) == len(schema.class_names) and all(
        str(entry.get("name", entry.get("id"))) == name for entry, name in zip(said, schema.class_names, strict=True)
    )
    ids = [entry.get("id") for entry in said]
    if same and all(type(each) is int for each in ids) and ids == sorted(set(ids)):
        return [dict(entry) for entry in said]
    return [{"id": number, "name": name} for number, name in enumerate(schema.class_names, 1)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
