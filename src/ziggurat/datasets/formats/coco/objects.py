"""Conversion of one COCO annotation to an object: box, outlines and run-length encoding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ziggurat.datasets.formats.detection.importing import BoxRule, clean_json
from ziggurat.datasets.samples import Problem
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import read_run_lengths

__all__ = ["EXACT_BOX", "object_of"]

EXACT_BOX: Final = "ziggurat_box"
"""Field of our own exports: (left, top, right, bottom), where x + width does not give right in floating point."""
_OWN_FIELDS: Final = frozenset(("image_id", "category_id", "bbox", "segmentation", "iscrowd", "difficult", EXACT_BOX))


def object_of(
    annotation: Mapping[str, Any],
    classes: Mapping[Any, int],
    *,
    key: str,
    rule: BoxRule,
    size: tuple[float, float] | None,
) -> tuple[ImageObject | None, list[Problem]]:
    """Return the object of an annotation, None where it cannot come, and what is wrong with it.

    Args:
        annotation: as the file has it.
        classes: id of a category → class number.
        key: of the sample.
        rule: decides on boxes.
        size: (width, height) of the image in pixels as the file says it.
    """
    where = f"annotation {_shown(annotation.get('id'))}"
    category = annotation.get("category_id")
    if not isinstance(category, int | str) or category not in classes:
        reason = f"{where}: there is no category of id {_shown(category)}."
        return None, [Problem(key=key, kind="unknown-class", reason=reason)]
    polygons, mask, problems = _segmentation(annotation.get("segmentation"), key, where, size)
    box = _box(annotation) or _box_of_polygons(polygons)
    if box is None:
        return None, [Problem(key=key, kind="bad-box", reason=f"{where}: it has no box of four numbers."), *problems]
    stays, problem = rule.check(key, box, where, size)
    problems += [problem] if problem else []
    if not stays:
        return None, problems
    return ImageObject(
        class_number=classes[category],
        box=box,
        polygons=polygons,
        mask=mask,
        crowd=bool(annotation.get("iscrowd")),
        difficult=bool(annotation.get("difficult")),
        details=_details(annotation, box),
    ), problems


def _box(annotation: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    exact = _numbers(annotation.get(EXACT_BOX))
    if exact is not None and len(exact) == 4:
        return (exact[0], exact[1], exact[2], exact[3])
    values = _numbers(annotation.get("bbox"))
    if values is None or len(values) != 4:
        return None
    left, top, width, height = values
    return (left, top, left + width, top + height)


def _box_of_polygons(polygons: tuple[tuple[float, ...], ...]) -> tuple[float, float, float, float] | None:
    points_x = [value for polygon in polygons for value in polygon[::2]]
    points_y = [value for polygon in polygons for value in polygon[1::2]]
    return (min(points_x), min(points_y), max(points_x), max(points_y)) if points_x else None


def _numbers(value: Any) -> list[float] | None:
    """Return a list of numbers, None where it is none; a whole number that is too large becomes infinite."""
    if not isinstance(value, list) or not set(map(type, value)) <= {int, float}:
        return None
    if not value or (max(value) < 1e300 and min(value) > -1e300):
        return list(map(float, value))
    return [float(each) if abs(each) < 1e300 else math.inf for each in value]


def _details(annotation: Mapping[str, Any], box: tuple[float, float, float, float]) -> dict[str, Any]:
    details = {name: clean_json(value) for name, value in annotation.items() if name not in _OWN_FIELDS}
    values = _numbers(annotation.get("bbox"))
    if values and len(values) == 4 and values[2:] != [box[2] - box[0], box[3] - box[1]] and EXACT_BOX not in annotation:
        details["bbox"] = values  # so that an export writes the numbers that stood here
    return details


def _segmentation(
    value: Any, key: str, where: str, size: tuple[float, float] | None
) -> tuple[tuple[tuple[float, ...], ...], dict[str, Any] | None, list[Problem]]:
    if isinstance(value, Mapping):
        mask = read_run_lengths(value)
        reason = f"{where}: its run lengths do not fit their size."
        if mask and size and mask["size"] != [size[1], size[0]]:
            reason = f"{where}: its mask is {mask['size'][1]} x {mask['size'][0]} pixels, not as large as its image."
            mask = None
        return (), mask, [] if mask else [Problem(key=key, kind="bad-mask", reason=reason)]
    outlines = value if isinstance(value, list) else []
    polygons = [_numbers(outline) for outline in outlines]
    good = [tuple(each) for each in polygons if each and len(each) >= 6 and len(each) % 2 == 0 and _finite(each)]
    reason = f"{where}: an outline is no list of at least three points."
    bad = [Problem(key=key, kind="bad-polygon", reason=reason)] if len(good) < len(polygons) else []
    return tuple(good), None, bad


def _finite(values: list[float]) -> bool:
    return math.isfinite(sum(values)) and max(values) < 1e9 and min(values) > -1e9


def _shown(value: Any) -> str:
    return repr(value)[:60]
