"""What a task says of results, as values: metrics with title and unit, tables, charts, and fields to choose by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = [
    "SHARE",
    "MetricInfo",
    "Report",
    "ReportChart",
    "ReportTable",
    "ReportValue",
    "SampleField",
    "ScoreInfo",
]

SHARE: Final = "share"
"""Unit of a value from 0 to 1, which people read in percent."""


@dataclass(frozen=True)
class MetricInfo:
    """What people should know of a metric.

    Args:
        title: the title, as the first words of a line.
        unit: after the value; ``SHARE`` for percent.
        mode: whether large or small values are good; empty where neither is.
        help: what it says, in one sentence.
        chart: name of the metric in whose chart the curve of a training is drawn; empty for a chart of its own.
        is_usual: whether that chart is shown by default.
    """

    title: str
    unit: str = ""
    mode: Literal["", "min", "max"] = "max"
    help: str = ""
    chart: str = ""
    is_usual: bool = True


@dataclass(frozen=True)
class ScoreInfo:
    """What the array that ranks samples stands for.

    Args:
        title: of what people see, in lower case, such as ``error``.
        unit: the unit of the value; ``SHARE`` for percent.
        sign: -1 where people see minus the score: small scores are the worst samples, large errors too.
    """

    title: str = "score"
    unit: str = ""
    sign: Literal[1, -1] = 1


@dataclass(frozen=True)
class ReportValue:
    """One number that stands for all samples.

    Args:
        name: of the metric.
        info: title and unit.
        value: None where it is not defined.
        is_primary: whether a training is judged by it.
        parts: values of its kind that stand together in one place instead of ``value``, such as those of three sizes.
        beside: a few words after the value, such as ``at 0.30``.
        note: what the value is made of, below it.
        is_asked: whether it depends on the fields with ``is_of_report``.
    """

    name: str
    info: MetricInfo
    value: float | None
    is_primary: bool = False
    parts: Sequence[float | None] = ()
    beside: str = ""
    note: str = ""
    is_asked: bool = False


@dataclass(frozen=True)
class ReportTable:
    """Values of each class, of each output, and the like.

    Args:
        name: in the metrics.
        title: for people.
        columns: name and description of each; the first names the row.
        rows: column → value; ``color`` (``#rrggbb``), where it is there, stands before the name of the row.
        bar: column of shares that has a bar; empty for none.
    """

    name: str
    title: str
    columns: Sequence[tuple[str, MetricInfo]]
    rows: Sequence[Mapping[str, Any]]
    bar: str = ""


@dataclass(frozen=True)
class ReportChart:
    """A chart of the samples.

    Most kinds are in the form that the island ``charts`` takes (``frontend/src/islands/charts.js``). A page draws these
    itself, values from 0 to 1, so that they are there without a script:

    - ``lines``: titles ``x`` and ``y``, ``percent`` (whether x is in percent), and ``lines``, each with ``name``,
      ``note``, ``points`` ([x, y] each), ``dot`` (a point or None) and ``is_context`` (gray, without a name in the
      legend). ``at`` is the x of a vertical line, ``best`` a point that is ringed.
    - ``list``: ``titles`` of three columns, and ``rows`` of name, count and share (None where it is not known).
    - ``heat`` of up to 40 rows becomes a table; ``is_hatched`` where last row and column stand for nothing, ``unit`` of
      the values, ``is_percent`` where shares are shown first, with the share of each row.

    Args:
        name: for ids.
        title: for people.
        data: JSON values. The third part of a point is the place of a sample in the arrays: the page puts its name and
            its address there. ``samples`` is what a click chooses samples by, see ``Task.sample_fields``: field → value
            of each bar or row (None for no click), or of a heat map, with ``{row_number}`` and ``{column_number}`` in
            values.
        note: what is seen, in one sentence.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All of it.

    Args:
        values: the primary metric first.
        tables: in the order of the metrics.
        charts: of the samples.
        counts: word and number of what the fields with ``is_of_report`` leave, such as ``missed``.
        suggestions: text and values of fields that a page offers, such as the best threshold.
    """

    values: Sequence[ReportValue] = ()
    tables: Sequence[ReportTable] = ()
    charts: Sequence[ReportChart] = ()
    counts: Sequence[tuple[str, int]] = ()
    suggestions: Sequence[tuple[str, Mapping[str, str]]] = ()


@dataclass(frozen=True)
class SampleField:
    """A field that samples are chosen by.

    Args:
        name: in addresses and in REST.
        title: for people.
        choices: value and title of each; empty for a number.
        low: the smallest number.
        high: the largest one.
        step: between numbers that a slider stops at.
        default: the value where nothing is asked for; empty where samples are not chosen by it then.
        is_of_report: whether figures and charts depend on it, and not only which samples are left.
        offered: the numbers that the page of an evaluation offers; empty for a slider.
    """

    name: str
    title: str
    choices: Sequence[tuple[str, str]] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.05
    default: str = ""
    is_of_report: bool = False
    offered: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """Return JSON values: name, title and default, and choices or the range of numbers."""
        if not self.choices:
            return {
                "name": self.name,
                "title": self.title,
                "default": self.default,
                "low": self.low,
                "high": self.high,
            }
        choices = [{"value": value, "title": title} for value, title in self.choices]
        return {"name": self.name, "title": self.title, "default": self.default, "choices": choices}
