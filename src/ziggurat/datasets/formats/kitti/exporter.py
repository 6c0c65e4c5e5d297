"""Export to KITTI: ``image_2`` and ``label_2`` for each split, and ``classes.txt``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.kitti.importer import DONT_CARE, type_names
from ziggurat.datasets.formats.shared.detection_export import (
    TREES,
    DetectionExport,
    PlacedSample,
    SampleSource,
    number_text,
)
from ziggurat.datasets.formats.shared.exports import ExportReport, line_names
from ziggurat.records.objects import ImageObject

__all__ = ["export_kitti"]

_FOLDERS: Final = {"train": "training", "test": "testing"}
_FIELDS: Final = frozenset(("truncated", "occluded", "alpha", "dimensions", "location", "rotation_y", "score", "type"))


def export_kitti(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection as KITTI: ``training``, ``val`` and ``testing``, each with labels.

    Columns that the dataset does not have are 0; those of ``DontCare`` are KITTI's -1, -10 and -1000. A type is one
    word: blanks in the names of classes become ``_``, and ``classes.txt`` has the names as they are.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = DetectionExport(dataset, folder, "kitti")
    names = line_names(dataset.schema.class_names)
    types = type_names(names)
    for split in dataset.splits:
        top = _FOLDERS.get(split, split)
        prefix = f"{top}/image_2/"
        for sample in export.samples(split, prefix, without=TREES):
            export.write(f"{top}/label_2/{sample.stem(prefix)}.txt", _text(export, sample, types))
    export.write("classes.txt", "".join(f"{name}\n" for name in names))
    export.write_keys()
    changed = [name for name, line in zip(dataset.schema.class_names, names, strict=True) if name != line]
    return export.report(*(f"The class {name!r} is written as one line." for name in changed))


def _text(export: DetectionExport, sample: PlacedSample, types: Sequence[str]) -> str:
    for each in sample.objects:
        lost = {
            "outlines": each.polygons,
            "run lengths": each.mask,
            "crowds": each.crowd,
            "the mark of difficult objects": each.difficult,
            "further fields": set(each.details) - _FIELDS,
        }
        for what, there in lost.items():
            if there:
                export.lose(what)
    return "".join(f"{_line(each, types)}\n" for each in sample.objects)


def _line(each: ImageObject, types: Sequence[str]) -> str:
    ignored = each.class_number < 0
    missing = -1.0 if ignored else 0.0
    get = each.details.get
    columns = [
        _number(get("truncated"), missing),
        _number(get("occluded"), missing),
        _number(get("alpha"), 10 * missing),
        *each.box,
        *_numbers(get("dimensions"), missing),
        *_numbers(get("location"), 1000 * missing),
        _number(get("rotation_y"), 10 * missing),
    ]
    score = get("score")
    columns += [score] if isinstance(score, int | float) else []
    return " ".join([DONT_CARE if ignored else types[each.class_number], *map(number_text, columns)])


def _number(value: Any, missing: float) -> float:
    return value if isinstance(value, int | float) else missing


def _numbers(value: Any, missing: float) -> list[float]:
    good = isinstance(value, list | tuple) and len(value) == 3 and all(isinstance(each, int | float) for each in value)
    return list(value) if good else [missing] * 3
