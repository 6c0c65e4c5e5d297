"""Argument checks shared by augmentors: sizes, ranges, fractions, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.errors import UsageError

__all__ = ["fraction", "positive", "ranged", "size_of", "span"]


def size_of(shape: int | Sequence[int], name: str) -> tuple[int, int]:
    """Return (height, width) of an argument that is one number for a square, or both."""
    sides = _numbers(shape)
    if len(sides) == 1:
        sides *= 2
    if len(sides) != 2 or not all(side.is_integer() and side >= 1 for side in sides):
        raise UsageError(
            f"`{name}` is a number of pixels, or (height, width), at least 1.",
            received=repr(shape),
            advice="Give whole numbers.",
        )
    return int(sides[0]), int(sides[1])


def ranged(values: Any, name: str, *, least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """Return (low, high) of an argument that is a range."""
    pair = _numbers(values)
    ordered = len(pair) == 2 and pair[0] <= pair[1]
    if not ordered or (least is not None and pair[0] < least) or (most is not None and pair[1] > most):
        limits = f", from {'-∞' if least is None else f'{least:g}'} to {'∞' if most is None else f'{most:g}'}"
        raise UsageError(
            f"`{name}` is a range (low, high){limits if least is not None or most is not None else ''}.",
            received=repr(values),
            advice="Give two numbers, the smaller one first.",
        )
    return pair[0], pair[1]


def span(values: int | Sequence[int], name: str, *, least: int = 0) -> tuple[int, int]:
    """Return (low, high) in whole numbers, both included; a single number is both."""
    pair = _numbers(values)
    low, high = ranged(pair * 2 if len(pair) == 1 else values, name, least=least)
    return int(low), int(high)


def fraction(value: float, name: str) -> float:
    """Return an argument that is a share from 0 to 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"`{name}` is from 0 to 1.", received=value, advice="Give a number such as 0.5.")
    return float(value)


def positive(value: float, name: str, *, zero: bool = True) -> float:
    """Return an argument that is not negative, or above 0."""
    if not (value > 0 or (zero and value == 0)) or value == float("inf"):
        rule = "is not negative" if zero else "is above 0"
        raise UsageError(f"`{name}` {rule}, and finite.", received=value, advice="Give its size without a sign.")
    return float(value)


def _numbers(values: Any) -> list[float]:
    """Return the numbers of an argument; none where it holds something else."""
    try:
        return [float(value) for value in np.ravel(values)]
    except (TypeError, ValueError):
        return []
