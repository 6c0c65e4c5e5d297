"""Corrected boxes of one image: what a person may change of its objects, and the label that comes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject

__all__ = ["BoxChanges", "CorrectedBox", "box_changes", "boxes_of", "check_boxes", "corrected_label"]

MOST_BOXES: Final = 5000
"""Most boxes of one image that a correction takes."""

_OF_THE_BOX: Final = ("area", "bbox")
"""COCO's details that repeat the box: they end with it."""


@dataclass(frozen=True)
class CorrectedBox:
    """One object of an image as a person left it.

    Args:
        source: place of the object in the label of the dataset, from 0; None for a new one.
        class_number: from 0; -1 for a region without a class.
        box: left, top, right, bottom in px of the stored image.
    """

    source: int | None
    class_number: int
    box: tuple[float, float, float, float]

    def as_list(self) -> list[Any]:
        """Return the form that is stored: source, class and the four sides."""
        return [self.source, self.class_number, *self.box]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> Self:
        """Return the box that ``as_list`` gave."""
        source, class_number, left, top, right, bottom = values
        return cls(source, class_number, (left, top, right, bottom))


@dataclass(frozen=True)
class BoxChanges:
    """What differs between a label and its corrections.

    Args:
        added: new objects.
        deleted: objects of the label that are gone.
        changed: objects with another box or class.
    """

    added: int = 0
    deleted: int = 0
    changed: int = 0

    def __add__(self, other: BoxChanges) -> BoxChanges:
        return BoxChanges(self.added + other.added, self.deleted + other.deleted, self.changed + other.changed)

    def __bool__(self) -> bool:
        return bool(self.added or self.deleted or self.changed)

    def __str__(self) -> str:
        """Return ``3 added, 1 deleted``; empty for no change."""
        parts = (("added", self.added), ("deleted", self.deleted), ("changed", self.changed))
        return ", ".join(f"{count} {word}" for word, count in parts if count)


def boxes_of(label: Sequence[Mapping[str, Any]]) -> list[CorrectedBox]:
    """Return the objects of a label, untouched."""
    return [CorrectedBox(place, each["class"], _sides(each)) for place, each in enumerate(label)]


def check_boxes(
    boxes: Sequence[CorrectedBox],
    label: Sequence[Mapping[str, Any]],
    class_names: Sequence[str],
    size: tuple[int, int] | None,
) -> None:
    """Refuse boxes that no object of the image can have; those that nobody touched may be what they are.

    Args:
        boxes: of the image.
        label: as the dataset has it.
        class_names: of the dataset, by number.
        size: width and height of the stored image in px; None if unknown.

    Raises:
        DataError: where a box is outside of the image or has no area, a class is unknown, or a source is named wrongly.
    """
    if len(boxes) > MOST_BOXES:
        raise DataError(f"{len(boxes)} boxes are given for an image; {MOST_BOXES} is the most.")
    seen: set[int] = set()
    for place, each in enumerate(boxes):
        if each.source is not None:
            if not 0 <= each.source < len(label) or each.source in seen:
                raise DataError(
                    "Each object of the dataset is named at most once, by its place from 0.",
                    received=f"box {place} with source {each.source}; the image has {len(label)} objects",
                    advice="Leave `source` out for a new object.",
                )
            seen.add(each.source)
        if not _is_untouched(each, label):
            _check_box(place, each, class_names, size)


def corrected_label(boxes: Sequence[CorrectedBox], label: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the label of an image with corrected boxes.

    Of an object with another class, all else stays. Of an object with another box, the outline moves and grows with it;
    a mask in run lengths, which cannot, is dropped; so are details that repeat the old box. ``crowd``, ``difficult``
    and other details stay.

    Args:
        boxes: as ``check_boxes`` lets them pass.
        label: as the dataset has it.
    """
    return [_corrected(each, label) for each in boxes]


def box_changes(boxes: Sequence[CorrectedBox], label: Sequence[Mapping[str, Any]]) -> BoxChanges:
    """Return what differs from the label; an order of its own is no change."""
    added = sum(each.source is None for each in boxes)
    changed = sum(each.source is not None and not _is_untouched(each, label) for each in boxes)
    return BoxChanges(added=added, deleted=len(label) - (len(boxes) - added), changed=changed)


def _sides(content: Mapping[str, Any]) -> tuple[float, float, float, float]:
    left, top, right, bottom = content["box"]
    return left, top, right, bottom


def _is_untouched(each: CorrectedBox, label: Sequence[Mapping[str, Any]]) -> bool:
    if each.source is None:
        return False
    before = label[each.source]
    return each.class_number == before["class"] and tuple(each.box) == _sides(before)


def _check_box(place: int, each: CorrectedBox, class_names: Sequence[str], size: tuple[int, int] | None) -> None:
    left, top, right, bottom = each.box
    said = f"box {place}: left {left:g}, top {top:g}, right {right:g}, bottom {bottom:g}"
    if not all(map(math.isfinite, each.box)) or left >= right or top >= bottom:
        raise DataError(
            "A box has an area: right is greater than left, and bottom greater than top.",
            received=said,
            advice="Make it larger, or delete it.",
            details={"box": place},
        )
    width, height = size or (math.inf, math.inf)
    if left < 0 or top < 0 or right > width or bottom > height:
        raise DataError(
            "A box lies within its image.",
            received=f"{said}; the image is {width:g} x {height:g} px" if size else said,
            advice="Cut it off at the border of the image.",
            details={"box": place},
        )
    if not -1 <= each.class_number < len(class_names):
        raise DataError(
            f"The class of a box is a number from 0 to {len(class_names) - 1}, or -1 for a region to ignore.",
            received=f"box {place} with class {each.class_number}",
            advice="The dataset lists its classes by number.",
            details={"box": place},
        )


def _corrected(each: CorrectedBox, label: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if each.source is None:
        return ImageObject(class_number=each.class_number, box=each.box).as_json()
    before = label[each.source]
    content = {**before, "class": each.class_number}
    if tuple(each.box) == _sides(before):
        return content
    content["box"] = list(each.box)
    content.pop("mask", None)
    if before.get("polygons"):
        content["polygons"] = [_moved(points, _sides(before), each.box) for points in before["polygons"]]
    details = {name: value for name, value in before.get("details", {}).items() if name not in _OF_THE_BOX}
    return {**content, "details": details} if details else {k: v for k, v in content.items() if k != "details"}


def _moved(points: Sequence[float], old: Sequence[float], new: Sequence[float]) -> list[float]:
    """Return an outline (x1, y1, x2, y2, …) that stands in the new box as it stood in the old one."""
    found = []
    for place, value in enumerate(points):
        start, end = place % 2, place % 2 + 2
        extent = old[end] - old[start]
        scale = (new[end] - new[start]) / extent if extent > 0 else 0.0
        found.append(new[start] + (value - old[start]) * scale)
    return found
