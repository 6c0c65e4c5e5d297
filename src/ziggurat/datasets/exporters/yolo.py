"""Owns writing a data set as YOLO: ``images/<split>``, ``labels/<split>`` and ``data.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ziggurat.datasets.exporters.detection import DetectionExport, PlacedSample, SampleSource
from ziggurat.datasets.exporters.report import ExportReport
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import mask_outlines, read_run_lengths

__all__ = ["export_yolo"]


def export_yolo(dataset: SampleSource, folder: Path, *, outlines: bool | None = None) -> ExportReport:
    """Write a data set of the kind detection as YOLO, with 12 digits: pixels come back to a millionth.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.
        outlines: whether lines are outlines, and not boxes; programs read a file with both wrongly. None: outlines
            where every object of the first picture with objects has one.

    Raises:
        DataError: where the data set has another kind, or the folder is not empty.
        StorageError: where the disk refuses.
    """
    export = DetectionExport(dataset, folder, "yolo")
    for split in dataset.splits:
        prefix = f"images/{split}/"
        (folder / "images" / split).mkdir(parents=True)
        for sample in export.samples(split, prefix):
            if outlines is None and sample.objects:
                outlines = all(len(_polygons(each)) == 1 for each in sample.objects)
            export.write(f"labels/{split}/{sample.stem(prefix)}.txt", _text(export, sample, bool(outlines)))
    content = {
        **{split: f"images/{split}" for split in dataset.splits},
        "nc": len(dataset.schema.class_names),
        "names": dict(enumerate(dataset.schema.class_names)),
    }
    export.write("data.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    export.write_keys()
    return export.report()


def _text(export: DetectionExport, sample: PlacedSample, outlines: bool) -> str:
    lines = []
    left_out = 0
    for each in sample.objects:
        if each.class_number < 0:
            left_out += 1
            continue
        lines.append(_outline_line(each, sample.size) if outlines else _box_line(each, sample.size))
        lost = {
            "outlines beside boxes": each.polygons and not outlines,
            "several outlines of one object": outlines and len(_polygons(each)) > 1,
            "run lengths": each.mask and not _is_whole(each, outlines),
            "crowds": each.crowd,
            "the mark of difficult objects": each.difficult,
            "further fields": each.details and set(each.details) != {"score"},
        }
        for what, there in lost.items():
            if there:
                export.lose(what)
    export.leave_out(sample.key, left_out, "no-class", "regions without a class")
    return "".join(f"{line}\n" for line in lines)


def _box_line(each: ImageObject, size: tuple[int, int]) -> str:
    left, top, right, bottom = each.box
    width, height = size
    values = [
        (left + right) / 2 / width,
        (top + bottom) / 2 / height,
        (right - left) / width,
        (bottom - top) / height,
    ]
    score = each.details.get("score")
    return _line(each.class_number, [*values, *([score] if isinstance(score, int | float) else [])])


def _outline_line(each: ImageObject, size: tuple[int, int]) -> str:
    left, top, right, bottom = each.box
    points = max(_polygons(each), key=len, default=(left, top, right, top, right, bottom, left, bottom))
    return _line(each.class_number, [value / size[place % 2] for place, value in enumerate(points)])


def _polygons(each: ImageObject) -> tuple[tuple[float, ...], ...]:
    """Return the outlines of an object; where it has none, those of its mask without the holes."""
    if each.polygons or each.mask is None:
        return each.polygons
    return tuple(tuple(points.ravel().tolist()) for points, is_hole in _outlines(each) if not is_hole)


def _is_whole(each: ImageObject, outlines: bool) -> bool:
    """Return whether an outline says all that the object's mask does."""
    return outlines and not each.polygons and [is_hole for _, is_hole in _outlines(each)] == [False]


def _outlines(each: ImageObject) -> list[tuple[Any, bool]]:
    mask = None if each.mask is None else read_run_lengths(each.mask)
    return [] if mask is None else mask_outlines(mask)


def _line(number: int, values: Sequence[float]) -> str:
    return " ".join([str(number), *(f"{value:.12g}" for value in values)])
