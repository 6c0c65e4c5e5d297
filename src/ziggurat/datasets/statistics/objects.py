"""Statistics of annotations in images: boxes of objects, and the classes of mask pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.statistics.choice import Source, chosen_entries
from ziggurat.datasets.statistics.model import MaskStatistics, ObjectStatistics
from ziggurat.datasets.statistics.numbers import describe
from ziggurat.errors import DatapointError
from ziggurat.records.schema import Schema

__all__ = ["mask_statistics", "object_statistics"]


def object_statistics(source: Source, samples: int, seed: int) -> ObjectStatistics:
    """Return the statistics of objects: their number of all images, their boxes of at most ``samples``."""
    counts = source.catalogue.column("objects")
    counts = counts[counts >= 0]
    looked_at = crowds = difficult = 0
    boxes: list[tuple[float, float, float, float]] = []
    for entry in chosen_entries(source.catalogue, samples, seed):
        looked_at += 1
        width, height = source.stored_size(entry) or (0, 0)
        for each in entry.label or ():
            if each["class"] < 0:
                continue
            left, top, right, bottom = each["box"]
            crowds += bool(each.get("crowd"))
            difficult += bool(each.get("difficult"))
            boxes.append((right - left, bottom - top, width, height))
    found = np.array(boxes, np.float64).reshape(-1, 4)
    sized = found[(found[:, 2] > 0) & (found[:, 3] > 0)]
    wide, high = sized[:, 0] / sized[:, 2], sized[:, 1] / sized[:, 3]
    return ObjectStatistics(
        total=int(counts.sum()),
        pictures_without=int((counts == 0).sum()),
        per_picture=describe(counts),
        width_px=describe(found[:, 0]),
        height_px=describe(found[:, 1]),
        relative_width=describe(wide),
        relative_height=describe(high),
        relative_area=describe(wide * high),
        crowds=crowds,
        difficult=difficult,
        looked_at=looked_at,
    )


def mask_statistics(source: Source, schema: Schema, masks: int, seed: int) -> MaskStatistics | None:
    """Return the share of pixels of each class, from at most ``masks`` masks; None where none can be read yet.

    Pixels with the number that counts for nothing do not count.
    """
    if source.dataset is None:
        return None
    pixels, pictures = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64)
    looked_at = unreadable = ignored = 0
    for entry in chosen_entries(source.catalogue, masks, seed):
        try:
            counts = _pixel_counts(source, entry)
        except DatapointError:
            unreadable += 1
            continue
        looked_at += 1
        if schema.ignore_class is not None and 0 <= schema.ignore_class < len(counts):
            ignored += int(counts[schema.ignore_class])
            counts[schema.ignore_class] = 0
        pixels[: len(counts)] += counts
        pictures[: len(counts)] += counts > 0
    total = int(pixels.sum())
    names = dict(enumerate(schema.class_names))
    shown = sorted({*names, *(int(number) for number in np.flatnonzero(pixels))} - {schema.ignore_class})
    shares = tuple(
        (
            number,
            names.get(number, f"class {number}"),
            float(pixels[number] / total) if total else 0.0,
            float(pictures[number] / looked_at) if looked_at else 0.0,
        )
        for number in shown
    )
    return MaskStatistics(
        shares=shares,
        looked_at=looked_at,
        unreadable=unreadable,
        ignore_class=schema.ignore_class,
        ignored_share=ignored / (total + ignored) if ignored else 0.0,
    )


def _pixel_counts(source: Source, entry: Any) -> np.ndarray:
    """Return pixels by class number of a sample's mask."""
    parts = source.parts(entry)
    mask = None if parts is None or len(parts) < 2 else parts[1]
    if mask is None or isinstance(mask, str):
        raise DatapointError(entry.key, "it has no mask.")
    pixels = mask if isinstance(mask, np.ndarray) else decode_mask(mask, entry.key)
    return np.bincount(pixels.reshape(-1))
