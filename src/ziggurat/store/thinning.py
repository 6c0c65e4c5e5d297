"""Downsampling of a long curve that preserves its appearance: ends, extremes and gaps stay."""

from __future__ import annotations

import numpy as np

from ziggurat.errors import UsageError

__all__ = ["FEWEST_POINTS", "thin"]

FEWEST_POINTS = 5
"""A curve cannot be thinned to fewer: its ends, its smallest and its largest value, and a NaN."""


def thin(values: np.ndarray, max_points: int) -> np.ndarray:
    """Return which points of a curve to keep.

    The points are divided into buckets of equal counts; of each, the first smallest, the first largest and the first
    NaN value stay, besides the first and the last point of the curve.

    Args:
        values: (N,) float64, in the order of the steps; NaN and infinities may be among them.
        max_points: at most so many stay; 5 or more.

    Returns:
        (M,) int64, ascending positions in ``values``; all N where N is no more than ``max_points``.

    Raises:
        UsageError: where ``max_points`` is less than 5.
    """
    if max_points < FEWEST_POINTS:
        raise UsageError(f"A curve is thinned to at least {FEWEST_POINTS} points.", received=max_points)
    count = len(values)
    if count <= max_points:
        return np.arange(count)
    buckets = (max_points - 2) // 3
    starts = np.arange(buckets) * count // buckets
    missing = np.isnan(values)
    kept = [np.array([0, count - 1])]
    for extreme, stand_in in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        comparable = np.where(missing, stand_in, values)
        extremes = _spread(extreme.reduceat(comparable, starts), starts, count)
        kept.append(_first_where((comparable == extremes) & ~missing, starts))
    kept.append(_first_where(missing, starts))
    return np.unique(np.concatenate(kept))


def _spread(of_buckets: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    return np.repeat(of_buckets, np.diff(starts, append=count))


def _first_where(wanted: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the first wanted position of each bucket; a bucket without one has none."""
    positions = np.flatnonzero(wanted)
    owners = np.searchsorted(starts, positions, side="right") - 1
    _, first = np.unique(owners, return_index=True)
    return positions[first]
