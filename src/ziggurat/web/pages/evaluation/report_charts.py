"""View model of the charts of a task that the page draws itself: lines, a list with bars, and a table of confusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from ziggurat.entities.task_report import ReportChart
from ziggurat.web.pages.evaluation.confusion import MOST_CELLS_ACROSS, ConfusionRow, confusion_rows
from ziggurat.web.pages.evaluation.curves import place_of

__all__ = ["DrawnChart", "DrawnLine", "drawn_chart"]

_SERIES: Final = 4


@dataclass(frozen=True, kw_only=True)
class DrawnLine:
    """A line.

    Args:
        name: of it.
        note: after the name in the legend.
        series: color, 1 to 4; 0 for a gray line.
        points: of an SVG polyline.
        dot: place of the point that belongs to what was asked; None for none.
    """

    name: str
    note: str
    series: int
    points: str
    dot: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class DrawnChart:
    """A chart, and how it is shown.

    Args:
        chart: it.
        form: ``lines``, ``list``, ``table``, or ``island`` for one that the island ``charts`` draws.
        lines: of the form ``lines``.
        at: x of the vertical line; None for none.
        best: place of the point that is ringed; None for none.
        rows: of the form ``table``.
        most: largest count of the form ``list``.
        asked: fields of each row or, with ``{row_number}`` and ``{column_number}``, of each cell; None where a click
            does nothing.
    """

    chart: ReportChart
    form: str = "island"
    lines: Sequence[DrawnLine] = ()
    at: float | None = None
    best: tuple[float, float] | None = None
    rows: Sequence[ConfusionRow] = ()
    most: int = 0
    asked: Sequence[Mapping[str, str] | None] = field(default=())

    def of_cell(self, row: int, column: int) -> dict[str, str] | None:
        """Return the fields that choose the samples of a cell; None where a click does nothing."""
        asked = self.chart.data.get("samples")
        if asked is None:
            return None
        return {name: value.format(row_number=row, column_number=column) for name, value in asked.items()}


def drawn_chart(chart: ReportChart, samples: str, given: Mapping[str, str]) -> DrawnChart:
    """Return how a chart is shown.

    Args:
        chart: of the report.
        samples: address of the page of the samples, for charts whose clicks lead there.
        given: fields that the address names, which are kept.
    """
    data = chart.data
    if data["kind"] == "lines":
        return _lines(chart)
    if data["kind"] == "list":
        most = max((count for _, count, _ in data["rows"]), default=0)
        return DrawnChart(chart=chart, form="list", most=most, asked=data.get("samples") or [None] * len(data["rows"]))
    if data["kind"] == "heat" and len(data["rows"]) <= MOST_CELLS_ACROSS and data["rows"] == data["columns"]:
        return DrawnChart(chart=chart, form="table", rows=confusion_rows(data["values"], data["rows"]))
    return DrawnChart(chart=_with_links(chart, samples, given))


def _lines(chart: ReportChart) -> DrawnChart:
    lines, series = [], 0
    for each in chart.data["lines"]:
        series += not each["is_context"]
        lines.append(
            DrawnLine(
                name=each["name"],
                note=each["note"],
                series=0 if each["is_context"] else 1 + (series - 1) % _SERIES,
                points=" ".join("{:g},{:g}".format(*place_of(*point)) for point in each["points"]),
                dot=place_of(*each["dot"]) if each["dot"] else None,
            )
        )
    at, best = chart.data.get("at"), chart.data.get("best")
    return DrawnChart(
        chart=chart,
        form="lines",
        lines=lines,
        at=None if at is None else place_of(at, 0)[0],
        best=place_of(*best) if best else None,
    )


def _with_links(chart: ReportChart, place: str, given: Mapping[str, str]) -> ReportChart:
    """Let bars and cells of the island lead to the samples that they stand for."""
    asked = chart.data.get("samples")
    if asked is None:
        return chart
    data = {name: value for name, value in chart.data.items() if name != "samples"}

    def link(own: Mapping[str, str] | None) -> str | None:
        return None if own is None else f"{place}?{urlencode({**given, **own}, safe='{}')}"

    made = {"link": link(asked)} if isinstance(asked, Mapping) else {"links": [link(each) for each in asked]}
    return ReportChart(chart.name, chart.title, {**data, **made}, chart.note)
