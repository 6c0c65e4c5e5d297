"""Objects that predictions of single images found, counted as evaluations do it, and the colors of their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.tasks.detection import detection_colors
from ziggurat.tasks.detection_matching import find_overlaps, image_counts, match

__all__ = ["count_found", "object_colors"]

_Boxes = Sequence[Mapping[str, Any]]


def count_found(actual: _Boxes, predicted: Sequence[_Boxes]) -> list[tuple[int, int, int]]:
    """Return, for each prediction, how many boxes are right, how many are wrong, and how many objects are missed.

    Args:
        actual: the objects of one image: ``box`` (left, top, right, bottom in px) and ``number`` of the class; what
            has a number below 0 does not count.
        predicted: predictions for that image: the same, with ``score``.
    """
    targets = _rows([actual], lambda each: (each["number"], 0 if each["number"] >= 0 else 2), (-1, 0))
    detections = _rows(predicted, lambda each: (each["score"], each["number"]), (0, 0))
    overlaps = find_overlaps(detections, np.repeat(targets, len(predicted), axis=0))
    return [tuple(counts) for counts in image_counts(overlaps, match(overlaps)).tolist()]


def object_colors(count: int) -> list[str]:
    """Return the colors of so many classes as ``#rrggbb``, by number."""
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in detection_colors(count)]


def _rows(
    images: Sequence[_Boxes], ends: Callable[[Mapping[str, Any]], tuple[float, float]], padding: Any
) -> np.ndarray:
    """Return boxes of images as (N, most, 6), with two numbers after each box."""
    found = np.zeros((len(images), max(1, *map(len, images)) if images else 1, 6))
    found[..., 4:] = padding
    for rows, boxes in zip(found, images, strict=True):
        for row, each in zip(rows, boxes, strict=False):
            row[:] = (*each["box"], *ends(each))
    return found
