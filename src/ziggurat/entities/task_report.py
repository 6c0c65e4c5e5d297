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
    """

    title: str
    unit: str = ""
    mode: Literal["", "min", "max"] = "max"
    help: str = ""


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
    """

    name: str
    info: MetricInfo
    value: float | None
    is_primary: bool = False


@dataclass(frozen=True)
class ReportTable:
    """Values of each class, of each output, and the like.

    Args:
        name: in the metrics.
        title: for people.
        columns: name and description of each; the first names the row.
        rows: column → value.
    """

    name: str
    title: str
    columns: Sequence[tuple[str, MetricInfo]]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ReportChart:
    """A chart of the samples, in the form that the island ``charts`` takes (``frontend/src/islands/charts.js``).

    Args:
        name: for ids.
        title: for people.
        data: JSON values. The third part of a point is the place of a sample in the arrays: the page puts its name and
            its address there. ``samples`` is what a click chooses samples by, see ``Task.sample_fields``: field → value
            of each bar (None for no click), or of a heat map, with ``{row_number}`` and ``{column_number}`` in values.
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
    """

    values: Sequence[ReportValue] = ()
    tables: Sequence[ReportTable] = ()
    charts: Sequence[ReportChart] = ()


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
    """

    name: str
    title: str
    choices: Sequence[tuple[str, str]] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.05
    default: str = ""
    is_of_report: bool = False

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
