"""View model of the chart of an evaluation: precision over recall, or ROC, of the worst classes among all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ziggurat.web.spread import spread_indices

__all__ = [
    "MOST_CONTEXT_LINES",
    "Chart",
    "ChartLine",
    "CurveKind",
    "CurveTable",
    "curve_table",
    "line_of",
    "place_of",
    "worst_classes",
]

CurveKind = Literal["pr", "roc"]

MOST_CONTEXT_LINES: Final = 40
"""With more classes, only the highlighted ones are drawn: the others would be a gray area, and slow to compute."""

_LEFT, _TOP, _WIDTH, _HEIGHT = 44, 24, 326, 220
_WORST: Final = 3
_TABLE_ROWS: Final = 21
_MOST_POINTS: Final = 80


@dataclass(frozen=True, kw_only=True)
class ChartLine:
    """One class in the chart.

    Args:
        number: of the class.
        name: of the class.
        series: color of the line, 1 to 4; 0 for a gray one.
        points: of an SVG polyline.
        mark: place of the threshold on it; None where there is none.
        value: average precision, or area under the ROC curve; None where it is not defined.
    """

    number: int
    name: str
    series: int
    points: str
    mark: tuple[float, float] | None
    value: float | None


@dataclass(frozen=True, kw_only=True)
class CurveTable:
    """The values of one line, for people who do not see the chart.

    Args:
        name: of the class.
        rows: threshold, precision, recall and false positive rate, thinned out.
    """

    name: str
    rows: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The chart.

    Args:
        kind: ``pr`` (precision over recall) or ``roc``.
        lines: the highlighted classes, the worst first.
        context: all other classes, in gray; empty where there are too many.
        hidden: classes that are not drawn.
        exact: whether all probabilities were kept; otherwise a class outside of a sample's best five counts as 0.
        tables: values of the highlighted classes.
    """

    kind: CurveKind
    lines: Sequence[ChartLine]
    context: Sequence[ChartLine]
    hidden: int
    exact: bool
    tables: Sequence[CurveTable]


def worst_classes(per_class: Sequence[Mapping[str, Any]], chosen: int | None) -> dict[int, int]:
    """Return class → color of the highlighted classes: the three with the lowest F1, and the chosen one.

    Args:
        per_class: ``f1`` and ``support`` of each class, without a threshold: the colors must not jump with it.
        chosen: a class that is highlighted as well; None for none.
    """
    ranked = sorted((each["f1"] or 0.0, number) for number, each in enumerate(per_class) if each["support"])
    found = {number: series for series, (_, number) in enumerate(ranked[:_WORST], start=1)}
    if chosen is not None and chosen not in found:
        found[chosen] = len(found) + 1
    return found


def line_of(
    number: int, name: str, curves: Mapping[str, Any], *, kind: CurveKind, series: int, threshold: float
) -> ChartLine:
    """Return the line of a class.

    Args:
        number: of the class.
        name: of the class.
        curves: as ``Evaluations.curves`` gives them.
        kind: of the chart.
        series: its color; 0 for gray.
        threshold: that is marked on a highlighted line; 0 for none.
    """
    across, up = _axes(curves, kind)
    if kind == "roc":
        across, up = [0.0, *across], [0.0, *up]
    marked = _marked(curves["thresholds"], threshold) if series else None
    mark = None if marked is None else place_of(*(axis[marked] for axis in _axes(curves, kind)))
    places = [place_of(across[at], up[at]) for at in spread_indices(len(across), _MOST_POINTS)]
    return ChartLine(
        number=number,
        name=name,
        series=series,
        points=" ".join(f"{x:g},{y:g}" for x, y in places),
        mark=mark,
        value=curves["average_precision"] if kind == "pr" else curves["area"],
    )


def curve_table(name: str, curves: Mapping[str, Any]) -> CurveTable:
    """Return the values of a class as a table."""
    columns = (curves["thresholds"], curves["precision"], curves["recall"], curves["false_positive"])
    rows = list(zip(*columns, strict=True))
    return CurveTable(name=name, rows=[rows[at] for at in spread_indices(len(rows), _TABLE_ROWS)])


def _axes(curves: Mapping[str, Any], kind: CurveKind) -> tuple[Sequence[float], Sequence[float]]:
    if kind == "pr":
        return curves["recall"], curves["precision"]
    return curves["false_positive"], curves["true_positive"]


def _marked(thresholds: Sequence[float], threshold: float) -> int | None:
    """Return the place of the last point that a threshold leaves; thresholds fall."""
    left = [place for place, value in enumerate(thresholds) if value >= threshold]
    return left[-1] if left and threshold > 0 else None


def place_of(across: float, up: float) -> tuple[float, float]:
    """Return x and y in the drawing of a chart (380 × 284) of two values from 0 to 1."""
    return round(_LEFT + _WIDTH * across, 1), round(_TOP + _HEIGHT * (1 - up), 1)
