"""Map functions of the nine contracts, which worker processes import: nothing else is here, so that they start soon."""

from __future__ import annotations

from typing import Any

import numpy as np


def unchanged(point: list[Any]) -> list[Any]:
    """Return a sample as it is."""
    return point


def noisy(point: list[Any], rng: np.random.RandomState) -> list[Any]:
    """Return a sample with noise, which is drawn by its place alone."""
    return [point[0] + rng.uniform(0, 9, (8, 8, 1)).astype(np.float32), point[1]]


def damaged(point: list[Any]) -> list[Any]:
    """Return a sample, and fail where its first pixel is negative."""
    if point[0][0, 0, 0] < 0:
        raise ValueError("sample 9 is damaged")
    return point
