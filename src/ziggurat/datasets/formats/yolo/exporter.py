"""Export to YOLO: ``images/<split>``, ``labels/<split>`` and ``data.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ziggurat.datasets.formats.shared.detection_export import TREES, DetectionExport, PlacedSample, SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.formatting import plural
from ziggurat.records.objects import ImageObject, objects_from_json
from ziggurat.records.run_lengths import mask_outlines, read_run_lengths

__all__ = ["export_yolo"]

_UNREAD: Final = (".gif", ".ppm", ".pgm")
"""Suffixes of images that YOLOv5 and Ultralytics pass over."""

_HEAD: Final = """\
# Ultralytics looks for these folders beside this file. YOLOv5 looks for them in its own folder: give it a line `path:`
# with the absolute path of the folder that this file is in.
"""


@dataclass
class _Counts:
    """What the report says of the objects."""

    objects: int = 0
    outlined: int = 0
    outside: int = 0


def export_yolo(dataset: SampleSource, folder: Path, *, outlines: bool | None = None) -> ExportReport:
    """Write a dataset of the kind detection as YOLO, with 12 digits: pixels come back to a millionth.

    Programs find the label file of an image by ``labels`` in place of the last ``images`` in its path. So the folders
    below ``images/<split>`` never have that name; where an image lay in the source is written to ``keys.jsonl``.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.
        outlines: whether lines are outlines, and not boxes; programs read a dataset with both wrongly. None: outlines
            where every object has exactly one, else boxes.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = DetectionExport(dataset, folder, "yolo")
    if outlines is None:
        outlines = _all_outlined(dataset)
    counts = _Counts()
    for split in dataset.splits:
        prefix = f"images/{split}/"
        (folder / "images" / split).mkdir(parents=True)
        for sample in export.samples(split, prefix, without=TREES | {split}, as_png=_UNREAD):
            export.write(f"labels/{split}/{sample.stem(prefix)}.txt", _text(export, sample, outlines, counts))
    content = {
        **{split: f"images/{split}" for split in dataset.splits},
        "nc": len(dataset.schema.class_names),
        "names": dict(enumerate(dataset.schema.class_names)),
    }
    export.write("data.yaml", _HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    export.write_keys()
    return export.report(*_notes(export, counts, outlines))


def _all_outlined(dataset: SampleSource) -> bool:
    """Return whether there are objects, and each has exactly one outline; the first that has not ends the look."""
    objects = (
        each for sample in dataset.samples() for each in objects_from_json(sample.label or ()) if each.class_number >= 0
    )
    first = next(objects, None)
    return first is not None and len(_polygons(first)) == 1 and all(len(_polygons(each)) == 1 for each in objects)


def _notes(export: DetectionExport, counts: _Counts, outlines: bool) -> list[str]:
    notes = []
    if outlines and counts.outlined < counts.objects:
        without = counts.objects - counts.outlined
        notes.append(
            f"{without} of {plural(counts.objects, 'object')} without an outline: written as the rectangle of the box."
        )
    elif counts.outlined and not outlines:
        notes.append(
            f"{counts.outlined} of {plural(counts.objects, 'object')} with an outline, and all are written as boxes: "
            "a YOLO dataset has one or the other. With the option `outlines` they are outlines, and boxes become "
            "rectangles."
        )
    if "val" not in export.dataset.splits:
        notes.append(
            "There is no validation split, and YOLO programs need one: add `val` to data.yaml, or split the dataset."
        )
    if export.converted:
        notes.append(
            f"{plural(export.converted, 'image is', 'images are')} written as PNG: YOLO programs do not read the "
            "format."
        )
    if counts.outside:
        notes.append(
            f"{plural(counts.outside, 'image has', 'images have')} an object that reaches far beyond it: YOLO programs "
            "leave such images out."
        )
    return notes


def _text(export: DetectionExport, sample: PlacedSample, outlines: bool, counts: _Counts) -> str:
    lines = []
    left_out = 0
    is_outside = False
    for each in sample.objects:
        if each.class_number < 0:
            left_out += 1
            continue
        values = _outline_values(each, sample.size) if outlines else _box_values(each.box, sample.size)
        lines.append(_line(each.class_number, values))
        box = _around(values) if outlines else values
        is_outside |= min(box) < 0 or max(box) > 1
        counts.objects += 1
        counts.outlined += bool(each.polygons)
        lost = {
            "several outlines of one object": outlines and len(_polygons(each)) > 1,
            "run lengths": each.mask and not _is_whole(each, outlines),
            "crowds": each.crowd,
            "the mark of difficult objects": each.difficult,
            "scores": "score" in each.details,
            "further fields": set(each.details) - {"score"},
        }
        for what, there in lost.items():
            if there:
                export.lose(what)
    counts.outside += is_outside
    export.leave_out(sample.key, left_out, "no-class", "regions without a class")
    return "".join(f"{line}\n" for line in lines)


def _box_values(box: Sequence[float], size: tuple[int, int]) -> list[float]:
    """Return middle, width and height of a box, relative to the image."""
    left, top, right, bottom = box
    width, height = size
    return [
        (left + right) / 2 / width,
        (top + bottom) / 2 / height,
        (right - left) / width,
        (bottom - top) / height,
    ]


def _outline_values(each: ImageObject, size: tuple[int, int]) -> list[float]:
    """Return the points of an outline relative to the image: of the longest one, else of the box."""
    left, top, right, bottom = each.box
    points = max(_polygons(each), key=len, default=())
    if len(points) < 6:  # programs take 2 points for a box
        points = (left, top, right, top, right, bottom, left, bottom)
    return [value / size[place % 2] for place, value in enumerate(points)]


def _around(points: Sequence[float]) -> list[float]:
    """Return middle, width and height of the box around an outline, as programs make it."""
    x, y = points[::2], points[1::2]
    return _box_values((min(x), min(y), max(x), max(y)), (1, 1))


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
