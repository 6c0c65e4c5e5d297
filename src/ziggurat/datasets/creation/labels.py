"""Adjustment of labels to a resized image: boxes, outlines and masks in its new pixel coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ziggurat.dataflow.imgaug.labels import clip_boxes, clip_polygon
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.records.objects import ImageObject, objects_from_json, objects_to_json
from ziggurat.records.run_lengths import mask_pixels, read_run_lengths, run_lengths

__all__ = ["fit_objects", "misfits"]


def fit_objects(
    label: list[Mapping[str, Any]],
    transform: Transform,
    size: tuple[int, int],
    source_size: tuple[int, int] | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """Return the objects of a fitted image, and how many of them are no longer in it.

    Args:
        label: of the image as it came.
        transform: what was done to it.
        size: (height, width) of the fitted image.
        source_size: likewise, of the image as it came; a mask of another size is left out.
    """
    kept: list[ImageObject] = []
    objects = objects_from_json(label)
    for each in objects:
        box = clip_boxes(transform.apply_boxes(np.array([each.box], np.float32)), size)[0]
        left, top, right, bottom = (round(float(value), 3) for value in box)
        if right <= left or bottom <= top:
            continue
        kept.append(
            replace(
                each,
                box=(left, top, right, bottom),
                polygons=_polygons(each, transform, size),
                mask=None if each.mask is None else _mask(each.mask, transform, source_size),
            )
        )
    return objects_to_json(kept), len(objects) - len(kept)


def misfits(label: Iterable[Mapping[str, Any]], source_size: tuple[int, int] | None) -> int:
    """Return how many objects have a mask that is not as large as their image, or is none.

    Args:
        label: of an image.
        source_size: its (height, width) as it came; None if unknown.
    """
    masks = (read_run_lengths(each["mask"]) for each in label if "mask" in each)
    return sum(mask is None or (source_size is not None and tuple(mask["size"]) != source_size) for mask in masks)


def _polygons(each: ImageObject, transform: Transform, size: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    outlines = [np.array(polygon, np.float32).reshape(-1, 2) for polygon in each.polygons]
    moved = [clip_polygon(polygon, size) for polygon in transform.apply_polygons(outlines)]
    return tuple(tuple(round(float(value), 3) for value in polygon.ravel()) for polygon in moved if len(polygon) >= 3)


def _mask(
    content: Mapping[str, Any], transform: Transform, source_size: tuple[int, int] | None
) -> dict[str, Any] | None:
    """Return a mask as it follows its image; None where it cannot."""
    if misfits([{"mask": content}], source_size):
        return None
    return run_lengths(transform.apply_mask(mask_pixels(content)))
