"""Neighbors by features: similar samples and near duplicates, by cosine, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ziggurat.datasets.embeddings.projections import unit_rows

__all__ = ["NEAR_LEAST", "near_pairs", "nearest", "nearest_of_each"]

_ROWS: Final = 4096
_COLUMNS: Final = 256
NEAR_LEAST: Final = 0.9
"""Cosine below which no two samples are near duplicates."""

_NEAR_SHARE: Final = 0.2
"""Two samples are near duplicates if they differ by no more than this share of what neighbors usually differ by."""


def nearest(features: np.ndarray, place: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples that are most similar to one of them, the most similar first; that one is not among them.

    Args:
        features: (N, D), read in blocks: it may stand in a file.
        place: of the sample.
        count: how many are wanted.

    Returns:
        (count,) int64 places and (count,) float32 cosines; fewer where there are fewer samples.
    """
    wanted = unit_rows(np.asarray(features[place : place + 1]))[0]
    cosines = np.concatenate(
        [unit_rows(np.asarray(features[start : start + _ROWS])) @ wanted for start in range(0, len(features), _ROWS)]
    )
    cosines[place] = -np.inf
    count = min(count, len(features) - 1)
    best = np.argpartition(-cosines, count - 1)[:count] if count else np.zeros(0, np.int64)
    best = best[np.lexsort((best, -cosines[best]))]
    return best, np.clip(cosines[best], -1, 1)


def nearest_of_each(features: np.ndarray, note: Callable[[int, int], None]) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar other sample of each sample.

    Args:
        features: (N, D).
        note: called with the number of samples that are done and of all; an error that it raises ends the work.

    Returns:
        (N,) int32 places, -1 for a single sample, and (N,) float32 cosines.
    """
    unit = unit_rows(np.asarray(features))
    places, cosines = np.full(len(unit), -1, np.int32), np.full(len(unit), -1, np.float32)
    for start in range(0, len(unit), _COLUMNS):
        note(start, len(unit))
        own = np.arange(start, min(start + _COLUMNS, len(unit)))
        found = unit[own] @ unit.T
        found[np.arange(len(own)), own] = -np.inf
        if len(unit) > 1:
            places[own] = found.argmax(axis=1)
            cosines[own] = found.max(axis=1)
    return places, np.minimum(cosines, 1)


def near_pairs(places: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the samples that have a near duplicate, the most similar first, and the cosine from which on they do.

    How similar different samples are depends on the features: what counts is how much closer two samples are than
    neighbors usually are.

    Args:
        places: (N,), of the most similar other sample, as of ``nearest_of_each``.
        cosines: (N,), to it.

    Returns:
        (M,) int32 places; pairs stand beside each other.
    """
    if not len(places) or places[0] < 0:
        return np.zeros(0, np.int32), 1.0
    usual = float(np.median(1 - cosines))
    least = max(NEAR_LEAST, 1 - _NEAR_SHARE * usual)
    found = np.flatnonzero(cosines >= least)
    pair = np.minimum(found, places[found])
    return found[np.lexsort((found, pair, -cosines[found]))].astype(np.int32), least
