"""Export to Pascal VOC: ``JPEGImages`` and ``ImageSets``, with ``Annotations`` or ``SegmentationClass``."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
from PIL import Image

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.formats.shared.detection_export import (
    TREES,
    DetectionExport,
    PlacedSample,
    SampleSource,
    number_text,
    xml_text,
)
from ziggurat.datasets.formats.shared.exports import ExportReport, line_names
from ziggurat.datasets.formats.voc.importer import voc_colors
from ziggurat.errors import DatapointError
from ziggurat.records.objects import ImageObject

__all__ = ["export_voc"]

_PREFIX: Final = "JPEGImages/"
_TAG: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_OWN_FIELDS: Final = frozenset(("name", "difficult", "bndbox"))
_IGNORED: Final = 255


def export_voc(dataset: SampleSource, folder: Path, *, one_based: bool = False) -> ExportReport:
    """Write a dataset of the kind detection or segmentation as Pascal VOC.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.
        one_based: whether pixels are numbered from 1, with the last one inside, as in the first VOC files.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    if dataset.schema.kind == "segmentation":
        return export_voc_masks(dataset, folder)
    export = DetectionExport(dataset, folder, "voc")
    names = line_names(dataset.schema.class_names)
    for split in dataset.splits:
        stems = []
        for sample in export.samples(split, _PREFIX, without=TREES):
            stem = sample.stem(_PREFIX)
            stems.append(stem)
            export.write(f"Annotations/{stem}.xml", _document(export, sample, names, one_based))
        export.write(f"ImageSets/Main/{split}.txt", "".join(f"{stem}\n" for stem in stems))
    export.write_keys()
    return export.report(*_write_names(export))


def _write_names(export: DetectionExport) -> list[str]:
    """Write the names of the classes, and return a note on each that is written otherwise."""
    names = export.dataset.schema.class_names
    lines = line_names(names)
    export.write("classes.txt", "".join(f"{line}\n" for line in lines))
    return [
        f"The class {name!r} is written as one line." for name, line in zip(names, lines, strict=True) if name != line
    ]


def _document(export: DetectionExport, sample: PlacedSample, names: list[str], one_based: bool) -> str:
    root = Element("annotation")
    inner = sample.path[len(_PREFIX) :]
    SubElement(root, "folder").text = "JPEGImages"
    SubElement(root, "filename").text = xml_text(inner)
    size = SubElement(root, "size")
    for name, value in zip(("width", "height", "depth"), (*sample.size, 3), strict=True):
        SubElement(size, name).text = str(value)
    left_out = 0
    for each in sample.objects:
        if each.class_number < 0:
            left_out += 1
            continue
        _add_object(root, each, names[each.class_number], one_based)
        lost = {
            "outlines": each.polygons,
            "run lengths": each.mask,
            "crowds": each.crowd,
            "further fields whose names are no XML names": not all(map(_TAG.fullmatch, each.details)),
            "numbers of further fields, other than as texts": any(map(_is_no_text, each.details.values())),
        }
        for what, there in lost.items():
            if there:
                export.lose(what)
    export.leave_out(sample.key, left_out, "no-class", "regions without a class")
    indent(root, "\t")
    return tostring(root, encoding="unicode") + "\n"


def _add_object(root: Element, each: ImageObject, name: str, one_based: bool) -> None:
    element = SubElement(root, "object")
    SubElement(element, "name").text = xml_text(name)
    for field, value in each.details.items():
        if field not in _OWN_FIELDS:
            _add(element, field, value)
    SubElement(element, "difficult").text = str(int(each.difficult))
    left, top, right, bottom = each.box
    corners = (left + 1, top + 1, right, bottom) if one_based else each.box
    box = SubElement(element, "bndbox")
    for corner, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True):
        SubElement(box, corner).text = number_text(value)


def _is_no_text(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, int | float) or any(map(_is_no_text, inner))


def _add(parent: Element, field: str, value: Any) -> None:
    if not _TAG.fullmatch(field):
        return
    for each in value if isinstance(value, list | tuple) else [value]:
        child = SubElement(parent, field)
        if isinstance(each, dict):
            for inner, content in each.items():
                _add(child, inner, content)
        elif isinstance(each, bool | int | float | str):
            child.text = xml_text(str(int(each)) if isinstance(each, bool) else str(each))


def export_voc_masks(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind segmentation as Pascal VOC; masks are PNG files with a palette.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = DetectionExport(dataset, folder, "voc", "segmentation")
    schema = dataset.schema
    colours = (*schema.colours, *voc_colors(256)[len(schema.colours) :])
    (folder / "SegmentationClass").mkdir()
    for split in dataset.splits:
        stems = []
        for sample in export.samples(split, _PREFIX, without=TREES):
            stem = sample.stem(_PREFIX)
            mask = _numbers(sample.parts[1], sample.key, schema.ignore_class)
            if mask is None:
                export.drop(split, sample.key, "bad-mask", "Its mask has numbers above 255, or is none.")
                continue
            _write_mask(mask, folder / f"SegmentationClass/{stem}.png", colours)
            stems.append(stem)
        export.write(f"ImageSets/Segmentation/{split}.txt", "".join(f"{stem}\n" for stem in stems))
    export.write_keys()
    notes = _write_names(export)
    if not schema.class_names:
        notes.append("Classes have no names; our importer will give them those of VOC.")
    if schema.ignore_class not in (None, _IGNORED):
        notes.append(f"VOC ignores the number 255: the dataset's {schema.ignore_class} is written so.")
    if schema.ignore_class is None:
        notes.append("VOC ignores the number 255, and the dataset none.")
    return export.report(*notes)


def _numbers(part: bytes | str | np.ndarray, key: str, ignored: int | None) -> np.ndarray | None:
    """Return the class numbers of a stored mask, (H, W) uint8; None where they are larger, or there are none.

    Args:
        part: the mask.
        key: of the sample.
        ignored: number that VOC's 255 stands for; None for none.
    """
    try:
        mask = part if isinstance(part, np.ndarray) else decode_mask(part if isinstance(part, bytes) else b"", key)
    except DatapointError:
        return None
    if not mask.size:
        return None
    mask = mask if ignored is None else np.where(mask == ignored, _IGNORED, mask)
    return None if mask.max() > _IGNORED else mask.reshape(mask.shape[:2]).astype(np.uint8)


def _write_mask(mask: np.ndarray, path: Path, colours: Sequence[tuple[int, int, int]]) -> None:
    image = Image.fromarray(mask)
    image.putpalette([value for color in colours for value in color])
    content = io.BytesIO()
    image.save(content, "PNG")
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.getvalue())
