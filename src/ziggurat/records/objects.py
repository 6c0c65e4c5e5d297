"""Objects in an image: a class, a box, and optionally an outline or a mask; and their JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

__all__ = ["ImageObject", "moved_details", "objects_from_json", "objects_to_json"]

_POINTS: Final = "keypoints"
_SIDES: Final = ("xmin", "ymin", "xmax", "ymax")
_ONLY_THERE: Final = frozenset(("bbox", "polygon", "robndbox"))


@dataclass(frozen=True, kw_only=True)
class ImageObject:
    """One object in an image, in pixels of the image as it is stored; (0, 0) is its upper left corner.

    Args:
        class_number: from 0; -1 for a region that belongs to no class and is to be ignored (KITTI's ``DontCare``).
        box: (left, top, right, bottom); right and bottom are where the object ends, so that width = right - left.
        polygons: outlines, each as (x1, y1, x2, y2, …).
        mask: COCO's compressed run lengths, ``{"size": [height, width], "counts": text}``; None for none.
        crowd: whether it stands for many objects of its class.
        difficult: whether it is hard to see and does not count in an evaluation.
        details: what only its source's format knows, as JSON values: COCO's ``id`` and ``area``, VOC's ``pose`` and
            ``truncated``, KITTI's further columns.
    """

    class_number: int
    box: tuple[float, float, float, float]
    polygons: tuple[tuple[float, ...], ...] = ()
    mask: Mapping[str, Any] | None = None
    crowd: bool = False
    difficult: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def width_px(self) -> float:
        """Width of the box."""
        return self.box[2] - self.box[0]

    @property
    def height_px(self) -> float:
        """Height of the box."""
        return self.box[3] - self.box[1]

    def as_json(self) -> dict[str, Any]:
        """Return the form in a record's label, without what is empty."""
        content: dict[str, Any] = {"class": self.class_number, "box": list(self.box)}
        if self.polygons:
            content["polygons"] = [list(polygon) for polygon in self.polygons]
        if self.mask is not None:
            content["mask"] = dict(self.mask)
        if self.crowd:
            content["crowd"] = True
        if self.difficult:
            content["difficult"] = True
        if self.details:
            content["details"] = dict(self.details)
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the object that ``as_json`` gave."""
        left, top, right, bottom = content["box"]
        return cls(
            class_number=content["class"],
            box=(left, top, right, bottom),
            polygons=tuple(tuple(polygon) for polygon in content.get("polygons", ())),
            mask=content.get("mask"),
            crowd=content.get("crowd", False),
            difficult=content.get("difficult", False),
            details=content.get("details", {}),
        )


def objects_to_json(objects: Iterable[ImageObject]) -> list[dict[str, Any]]:
    """Return the label of an image with these objects."""
    return [each.as_json() for each in objects]


def objects_from_json(label: Iterable[Mapping[str, Any]]) -> list[ImageObject]:
    """Return the objects of a label."""
    return [ImageObject.from_json(content) for content in label]


def moved_details(
    details: Mapping[str, Any], points: Callable[[Any], np.ndarray], *, scaled: bool = True
) -> dict[str, Any]:
    """Return the details of an object whose image is moved.

    Key points (x, y, visibility, …) move, but not those that are missing (0, 0, 0), and so do the boxes of VOC's parts.
    Boxes and outlines as a file wrote them no longer hold and are left out, as is the area where sizes change; box,
    outlines and mask of the object say the same.

    Args:
        details: of the object.
        points: moves points (N, 2) of x and y.
        scaled: whether sizes change.
    """
    without = _ONLY_THERE | ({"area"} if scaled else set())
    moved = {name: _moved(value, points) for name, value in details.items() if name not in without}
    values = moved.get(_POINTS)
    numbers = values if isinstance(values, list) and all(isinstance(each, int | float) for each in values) else []
    if numbers and len(numbers) % 3 == 0:
        triples = np.array(numbers, np.float64).reshape(-1, 3)
        seen = triples.any(axis=1)
        triples[seen, :2] = np.asarray(points(triples[seen, :2]), np.float64).round(3)
        moved[_POINTS] = triples.ravel().tolist()
    return moved


def _moved(value: Any, points: Callable[[Any], np.ndarray]) -> Any:
    """Return a value with all boxes of VOC in it moved."""
    if isinstance(value, list):
        return [_moved(each, points) for each in value]
    if not isinstance(value, Mapping):
        return value
    moved = {name: _moved(each, points) for name, each in value.items()}
    try:
        left, top, right, bottom = (float(value[side]) for side in _SIDES)
    except (KeyError, TypeError, ValueError):
        return moved
    corners = points([(left, top), (right, bottom)])
    return moved | dict(zip(_SIDES, (*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist()), strict=True))
