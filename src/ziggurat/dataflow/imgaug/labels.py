"""Labels with coordinates (boxes, polygons, points, keypoints): checks, bounding boxes and clipping.

Coordinates are (x, y) in pixels from the top left corner of the image, as ``images.py`` says: a box ``(x1, y1, x2,
y2)`` covers whole pixels where its corners are whole numbers. Transforms only *move* labels. Clipping to the image
and dropping labels that left it are separate steps, in this module, because datasets differ in what they count as
still visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.imgaug.images import Array
from ziggurat.errors import DataError

__all__ = [
    "LabelError",
    "as_boxes",
    "as_keypoints",
    "as_points",
    "box_areas",
    "clip_boxes",
    "clip_polygon",
    "corners_of",
    "hide_keypoints",
    "hull_of",
    "keep_boxes",
    "polygon_area",
]


class LabelError(DataError, ValueError):
    """Boxes, polygons, points or keypoints are not arrays of the right shape."""

    code = "label"


def as_points(coords: Any) -> Array:
    """Return points as floating point, (N, 2) of (x, y); ``float32`` stays, all else becomes ``float64``."""
    return _floats(coords, 2, "Coordinates are an array (N, 2) of (x, y)")


def as_boxes(boxes: Any) -> Array:
    """Return boxes as floating point, (N, 4) of (x1, y1, x2, y2)."""
    return _floats(boxes, 4, "Boxes are an array (N, 4) of (x1, y1, x2, y2)")


def as_keypoints(keypoints: Any) -> Array:
    """Return keypoints as floating point, (N, 3) of (x, y, visibility)."""
    return _floats(keypoints, 3, "Keypoints are an array (N, 3) of (x, y, visibility)")


def corners_of(boxes: Array) -> Array:
    """Return the four corners of each box, (N * 4, 2)."""
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 2)


def hull_of(corners: Array) -> Array:
    """Return the smallest upright boxes (N, 4) around every four of (N * 4, 2) corners."""
    quads = corners.reshape(-1, 4, 2)
    return np.concatenate([quads.min(axis=1), quads.max(axis=1)], axis=1)


def box_areas(boxes: Array) -> Array:
    """Return the area of each box in square pixels; 0 where a side is turned inside out."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def clip_boxes(boxes: Any, shape: Sequence[int]) -> Array:
    """Return boxes cut off at the border of an image.

    Args:
        boxes: (N, 4).
        shape: of the image: (H, W) or (H, W, C).
    """
    height, width = shape[:2]
    limits = np.array([width, height, width, height])
    clipped = as_boxes(boxes)
    return np.clip(clipped, 0, limits.astype(clipped.dtype))


def keep_boxes(
    boxes: Any, shape: Sequence[int], *, min_area_px: float = 1.0, min_visibility: float = 0.0
) -> tuple[Array, Array]:
    """Clip boxes to an image and drop those of which too little is left.

    Args:
        boxes: (N, 4), as a transform moved them.
        shape: of the image: (H, W) or (H, W, C).
        min_area_px: smallest area that must be left, in square pixels.
        min_visibility: smallest part of the area before clipping that must be left, 0 to 1.

    Returns:
        The boxes (M, 4) that are left, clipped, and their M places in ``boxes``; use these to pick the classes too.
    """
    moved = as_boxes(boxes)
    clipped = clip_boxes(moved, shape)
    before, after = box_areas(moved), box_areas(clipped)
    kept = np.flatnonzero((after > 0) & (after >= min_area_px) & (after >= min_visibility * before))
    return clipped[kept], kept


def clip_polygon(polygon: Any, shape: Sequence[int]) -> Array:
    """Return the part of a polygon that lies in an image, (M, 2); M is 0 where nothing does.

    The four borders cut one after another: Sutherland and Hodgman, "Reentrant polygon clipping" (CACM 17, 1974). What
    falls into several parts stays one polygon, joined along the border.
    """
    points = as_points(polygon)
    height, width = shape[:2]
    for axis, limit, sign in ((0, 0.0, 1.0), (0, float(width), -1.0), (1, 0.0, 1.0), (1, float(height), -1.0)):
        points = _cut(points, axis, limit, sign)
    return points if polygon_area(points) > 0 else points[:0]


def polygon_area(polygon: Any) -> float:
    """Return the area of a polygon (N, 2) in square pixels, by the shoelace formula."""
    points = as_points(polygon)
    x, y = points[:, 0], points[:, 1]
    return 0.5 * abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))))


def hide_keypoints(keypoints: Any, shape: Sequence[int]) -> Array:
    """Return keypoints (N, 3) of which those outside an image have visibility 0.

    Visibility is that of COCO: 0 not labeled, 1 labeled but hidden, 2 labeled and visible.
    """
    points = as_keypoints(keypoints).copy()
    height, width = shape[:2]
    x, y = points[:, 0], points[:, 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    points[~inside, 2] = 0
    return points


def _floats(values: Any, columns: int, rule: str) -> Array:
    array = np.asarray(values)
    if array.size == 0:
        array = array.reshape(0, columns)
    if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "fiu":
        raise LabelError(
            f"{rule}.",
            received=f"an array of shape {array.shape} and type {array.dtype}",
            advice="Check the component's index and its shape.",
        )
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _cut(points: Array, axis: int, limit: float, sign: float) -> Array:
    """Return what of a polygon lies on one side of a line."""
    if len(points) == 0:
        return points
    inside = sign * (points[:, axis] - limit) >= 0
    kept: list[Array] = []
    for at in range(len(points)):
        here, previous = points[at], points[at - 1]
        if inside[at] != inside[at - 1]:
            share = (limit - previous[axis]) / (here[axis] - previous[axis])
            kept.append(previous + share * (here - previous))
        if inside[at]:
            kept.append(here)
    return np.array(kept, dtype=points.dtype).reshape(-1, 2)
