"""Importer for Label Studio: JSON files of tasks with annotations, and their short form (JSON-MIN)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import clean_json, plain_number
from ziggurat.datasets.formats.shared.tool_files import (
    ToolImage,
    ToolImporter,
    ToolObject,
    ellipse,
    points_of,
    read_json,
    size_of,
    turned_box,
)
from ziggurat.datasets.samples import Problem

__all__ = ["LabelStudioImporter"]

_LOST: Final = {
    "brush": "they are masks of a brush",
    "bitmask": "they are masks of a brush",
    "keypoint": "they are points",
    "choices": "they are choices for whole images",
    "vector": "they are lines",
}
_UPLOADED: Final = re.compile(r"[0-9a-f]{8}-(?=.)")
_FORMS: Final = ("rectangle", "polygon", "ellipse")


class LabelStudioImporter(ToolImporter):
    """A project that Label Studio exported as JSON or JSON-MIN."""

    name = "label_studio"
    title = "Label Studio (JSON)"
    markers = (".json",)
    marks = (
        rb'"original_width"\s*:|"completed_by"\s*:|"(rectangle|polygon|ellipse|brush|keypoint)labels"',
        rb'"annotations"\s*:|"completions"\s*:|"label"\s*:|"annotator"\s*:',
        rb"\A\s*(\xef\xbb\xbf)?\s*[\[{]",
    )

    def images(self, root: Path, path: str, options: Mapping[str, Any]) -> Iterator[ToolImage | Problem]:
        content = read_json(root / path)
        for number, task in enumerate(content if isinstance(content, list) else [content], 1):
            if not isinstance(task, dict):
                reason = f"Task {number} is no object of names and values."
                yield Problem(key=path, kind="bad-line", reason=reason, left_out=True)
                continue
            written, others = _results(task)
            names = _names(task)
            if not names:
                reason = f"Task {number} names no image."
                yield Problem(key=path, kind="bad-line", reason=reason, left_out=True, objects=len(written))
                continue
            if others:
                reason = f"Task {number} has several annotations, of which the first counts."
                why = "they are of a further annotation of their image"
                yield Problem(key=names[0], kind="bad-line", reason=reason, objects=others, why=why)
            objects = [_object(each, f"task {number}, region {place}") for place, each in enumerate(written, 1)]
            sizes = (size_of(each.get("original_width"), each.get("original_height")) for each in written)
            yield ToolImage(names=names, objects=tuple(objects), size=next(filter(None, sizes), None))


def _results(task: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """Return the regions of a task, and how many its further annotations have."""
    annotations = task.get("annotations", task.get("completions"))
    if isinstance(annotations, list):
        used = [each for each in annotations if isinstance(each, dict) and not each.get("was_cancelled")]
        results = [_regions(each.get("result")) for each in used]
        return (results[0] if results else []), sum(map(len, results[1:]))
    lists = [value for name, value in task.items() if name not in ("id", "data") and isinstance(value, list)]
    regions = [each for value in lists for each in _regions(value)]
    return [{**each, "value": each} for each in regions], 0


def _regions(result: Any) -> list[Mapping[str, Any]]:
    """Return the regions of a result: of the parts of one region, which have one id, the one with its class."""
    found: dict[Any, Mapping[str, Any]] = {}
    for number, each in enumerate(result if isinstance(result, list) else ()):
        if not isinstance(each, dict) or each.get("type") == "relation":
            continue
        identity = str(each["id"]) if each.get("id") is not None else number
        if identity not in found or (_class_of(each) and not _class_of(found[identity])):
            found[identity] = each
    return list(found.values())


def _class_of(each: Mapping[str, Any]) -> str:
    value = each.get("value", each)
    lists = [one for name, one in value.items() if name.endswith("labels") and one] if isinstance(value, dict) else []
    names = [str(clean_json(name)).strip() for one in lists for name in (one if isinstance(one, list) else [one])]
    return names[0] if len(names) == 1 else ""


def _names(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the image of a task may be called: as it is written, and without the letters of an upload."""
    data = task.get("data", task)
    values = [data.get("image"), *data.values()] if isinstance(data, dict) else []
    written = [value for value in values if isinstance(value, str) and re.search(r"\.\w{3,4}($|\?)", value)][:1]
    written += [task["file_upload"]] if isinstance(task.get("file_upload"), str) else []
    short = [_UPLOADED.sub("", posixpath.basename(name.replace("\\", "/")), count=1) for name in written]
    return tuple(dict.fromkeys([*written, *short]))


def _object(each: Mapping[str, Any], where: str) -> ToolObject:
    value = each.get("value")
    name = _class_of(each)
    if not isinstance(value, dict):
        return ToolObject(name=name, where=where)
    form = str(each.get("type") or next((key for key in value if key.endswith("labels")), ""))
    form = re.sub("labels?$", "", form) or ("polygon" if "points" in value else "rectangle")
    if form in _LOST:
        return ToolObject(name=name, where=where, lost=_LOST[form])
    if form not in _FORMS:
        return ToolObject(name=name, where=where, lost=f"no task learns from {form[:40]!r} yet")
    size = size_of(each.get("original_width"), each.get("original_height"))
    if size is None:
        return ToolObject(name=name, where=where)
    by = size[0] / 100, size[1] / 100
    details = {"id": clean_json(each["id"])} if each.get("id") else {}
    if form == "polygon":
        points = points_of(value.get("points")) or ()
        outline = tuple(number * by[place % 2] for place, number in enumerate(points))
        return ToolObject(name=name, where=where, polygons=(outline,) if len(outline) >= 6 else (), details=details)
    sides = ("x", "y", "width", "height") if form == "rectangle" else ("x", "y", "radiusX", "radiusY")
    numbers = [plain_number(value.get(side)) for side in sides]
    x, y, width, height = (
        (number if number is not None and abs(number) < 1e9 else float("nan")) * by[place % 2]
        for place, number in enumerate(numbers)
    )
    turned = plain_number(value.get("rotation")) or 0.0
    if not abs(x + y + width + height) < 1e12:
        return ToolObject(name=name, where=where)
    if form == "ellipse":
        outline = ellipse(x, y, (width, height), turned)
        return ToolObject(name=name, where=where, polygons=(outline,), details=details)
    box = (x, y, x + width, y + height)
    if not turned:
        return ToolObject(name=name, where=where, box=box, details=details)
    outline = turned_box(box, turned, (x, y))  # a corner is the pivot
    return ToolObject(name=name, where=where, polygons=(outline,), note="a rotated box", details=details)
