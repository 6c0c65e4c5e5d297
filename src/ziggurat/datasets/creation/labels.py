"""Owns how the objects of a picture follow when the picture is fitted: boxes, outlines and masks in its new pixels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ziggurat.dataflow.imgaug.labels import clip_boxes, clip_polygon
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.errors import MissingDependencyError
from ziggurat.records.objects import ImageObject, objects_from_json, objects_to_json

__all__ = ["fit_objects"]


def fit_objects(
    label: list[Mapping[str, Any]], transform: Transform, size: tuple[int, int]
) -> tuple[list[dict[str, Any]], int]:
    """Return the objects of a fitted picture, and how many of them are no longer in it.

    Args:
        label: of the picture as it came.
        transform: what was done to it.
        size: (height, width) of the fitted picture.
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
                mask=None if each.mask is None else _mask(each.mask, transform),
            )
        )
    return objects_to_json(kept), len(objects) - len(kept)


def _polygons(each: ImageObject, transform: Transform, size: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    outlines = [np.array(polygon, np.float32).reshape(-1, 2) for polygon in each.polygons]
    moved = [clip_polygon(polygon, size) for polygon in transform.apply_polygons(outlines)]
    return tuple(tuple(round(float(value), 3) for value in polygon.ravel()) for polygon in moved if len(polygon) >= 3)


def _mask(run_lengths: Mapping[str, Any], transform: Transform) -> dict[str, Any]:
    try:
        from pycocotools import mask as coco_mask
    except ModuleNotFoundError as error:
        raise MissingDependencyError("pycocotools", extra="coco", purpose="resizing masks in run lengths") from error
    counts = run_lengths["counts"]
    encoded = {"size": run_lengths["size"], "counts": counts.encode() if isinstance(counts, str) else counts}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, about the inside of pycocotools
        pixels = coco_mask.decode(encoded)  # pyright: ignore[reportArgumentType]
    moved = transform.apply_mask(pixels)
    again: Any = coco_mask.encode(np.asfortranarray(moved))
    return {"size": [int(side) for side in again["size"]], "counts": again["counts"].decode()}
