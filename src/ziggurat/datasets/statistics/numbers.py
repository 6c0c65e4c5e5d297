"""Summary of numbers: mean, spread, quantiles, and a histogram with suitable bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from ziggurat.datasets.statistics.model import Bar, Histogram, NumberStatistics

__all__ = ["bars_of", "describe", "histogram_of"]

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS: Final = 30
_LARGEST_WHOLE: Final = 1e15
_FACTOR: Final = 100
"""Where the 99th percentile is this many times the first one, bins grow by a factor."""


def describe(values: Any, *, missing: int = 0) -> NumberStatistics | None:
    """Return what is known of numbers, None where there are none.

    Args:
        values: (N) numbers; those that are not finite do not count.
        missing: places without a number.
    """
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    quantiles = np.quantile(finite, _QUANTILES)
    exponent = int(np.frexp(np.abs(finite).max())[1])
    scaled = np.ldexp(finite, -exponent)  # squares of huge numbers would be infinite
    return NumberStatistics(
        count=len(finite),
        missing=missing + len(numbers) - len(finite),
        mean=float(np.ldexp(scaled.mean(), exponent)),
        deviation=float(np.ldexp(scaled.std(), exponent)),
        minimum=float(finite.min()),
        maximum=float(finite.max()),
        quantiles=tuple((share, float(value)) for share, value in zip(_QUANTILES, quantiles, strict=True)),
        histogram=histogram_of(finite),
    )


def histogram_of(values: np.ndarray) -> Histogram:
    """Return how numbers are distributed.

    A few different whole numbers have a bin each. Positive ones over several powers of ten have bins that grow by a
    factor. All others have bins of one width.

    Args:
        values: (N) float64, finite, at least one.
    """
    low, high = float(values.min()), float(values.max())
    whole = bool((values == np.floor(values)).all()) and max(abs(low), abs(high)) < _LARGEST_WHOLE
    if whole and high - low < _BINS:
        edges = np.arange(low - 0.5, high + 1, 1.0)
    elif low > 0 and _is_wide(values):
        edges = np.geomspace(low, high, _BINS + 1)
        edges[0], edges[-1] = low, high
        counts, _ = np.histogram(values, edges)
        return Histogram(edges=_floats(edges), counts=_whole(counts), logarithmic=True)
    elif low == high:
        margin = max(0.5, abs(low) * 0.01)
        edges = np.array([low - margin, low + margin])
    elif whole:
        width = float(np.ceil((high - low + 1) / _BINS))
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    if not (np.diff(edges) > 0).all():  # numbers so near each other that no bins fit between them
        edges = np.array([low, max(high, np.nextafter(low, np.inf))])
    counts, _ = np.histogram(values, edges)
    return Histogram(edges=_floats(edges), counts=_whole(counts))


def bars_of(values: Iterable[Any], at_most: int = 20) -> tuple[tuple[Bar, ...], int]:
    """Return the most frequent values as bars, the highest first, and how many values have none."""
    counts = Counter(values)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    bars = tuple(Bar(name=str(value), count=count) for value, count in ordered[:at_most])
    return bars, sum(counts.values()) - sum(bar.count for bar in bars)


def _is_wide(values: np.ndarray) -> bool:
    first, last = np.quantile(values, (0.01, 0.99))
    return bool(last > _FACTOR * first)


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _whole(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
