"""Owns the checks of arguments that several augmentors share: sizes, ranges, fractions, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.errors import UsageError

__all__ = ["fraction", "positive", "ranged", "size_of", "span"]


def size_of(shape: int | Sequence[int], name: str) -> tuple[int, int]:
    """Return (height, width) of an argument that is one number for a square, or both."""
    pair = (shape, shape) if isinstance(shape, int) else tuple(shape)
    if len(pair) != 2 or not all(isinstance(side, int) or float(side).is_integer() for side in pair) or min(pair) < 1:
        raise UsageError(
            f"`{name}` is a number of pixels, or (height, width), at least 1.",
            received=repr(shape),
            advice="Give two whole numbers.",
        )
    return int(pair[0]), int(pair[1])


def ranged(values: Any, name: str, *, least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """Return (low, high) of an argument that is a range."""
    pair: tuple[Any, ...] = tuple(values) if hasattr(values, "__len__") else ()
    ordered = len(pair) == 2 and pair[0] <= pair[1]
    if not ordered or (least is not None and pair[0] < least) or (most is not None and pair[1] > most):
        limits = f", from {'-∞' if least is None else f'{least:g}'} to {'∞' if most is None else f'{most:g}'}"
        raise UsageError(
            f"`{name}` is a range (low, high){limits if least is not None or most is not None else ''}.",
            received=repr(values),
            advice="Give two numbers, the smaller one first.",
        )
    return float(pair[0]), float(pair[1])


def span(values: int | Sequence[int], name: str, *, least: int = 0) -> tuple[int, int]:
    """Return (low, high) in whole numbers, both included; a single number is both."""
    low, high = ranged((values, values) if isinstance(values, int) else values, name, least=least)
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
