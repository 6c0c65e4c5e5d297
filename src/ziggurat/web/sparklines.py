"""Sparklines: the outline of a curve as an SVG path, with the position of its best point."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

__all__ = ["HEIGHT", "WIDTH", "Sparkline", "sparkline_of"]

WIDTH: Final = 130
HEIGHT: Final = 24
_LEFT: Final = 2.0
_RIGHT: Final = 124.0
_TOP: Final = 4.0
_BOTTOM: Final = 21.0
_SPREAD: Final = 2.0


@dataclass(frozen=True)
class Sparkline:
    """A sparkline, in the units of a box of ``WIDTH`` by ``HEIGHT``.

    Args:
        path: of the line.
        best: x and y of the best point; None where it is not known.
        end: x and y of the last point.
    """

    path: str
    best: tuple[float, float] | None
    end: tuple[float, float]


@lru_cache(maxsize=4096)
def sparkline_of(outline: tuple[tuple[int, float], ...], best: tuple[int, float] | None, *, rises: bool) -> Sparkline:
    """Return the line through the points of an outline.

    Args:
        outline: step and value of some points, one at least.
        best: step and value of the best point; None where it is not known.
        rises: whether large values are good; values that are much worse than most are clipped.
    """
    values = [value for _, value in outline] + ([best[1]] if best is not None else [])
    low, high = _range(values, rises=rises)
    last = max(outline[-1][0], best[0] if best is not None else 0, 1)

    def place(step: int, value: float) -> tuple[float, float]:
        share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return _number(_LEFT + (_RIGHT - _LEFT) * step / last), _number(_BOTTOM - (_BOTTOM - _TOP) * share)

    points = [place(step, value) for step, value in outline]
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    if len(points) == 1:
        path += "h.01"  # a line of no length is not drawn
    return Sparkline(path, None if best is None else place(*best), points[-1])


def _range(values: Sequence[float], *, rises: bool) -> tuple[float, float]:
    """Return the displayed range, without values that are much worse than most: they would flatten the rest."""
    low, high = min(values), max(values)
    if len(values) < 5:
        return low, high
    first, middle, third = statistics.quantiles(values, n=4)
    reach = _SPREAD * max(third - first, abs(high - middle) if rises else abs(middle - low))
    if rises and reach > 0:
        return max(low, first - reach), high
    return low, min(high, third + reach) if reach > 0 else high


def _number(value: float) -> float:
    return round(value, 1)
