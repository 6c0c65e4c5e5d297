"""What the page of an evaluation shows of a task: metrics with title and unit, tables, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

__all__ = [
    "SHARE",
    "MetricInfo",
    "Report",
    "ReportChart",
    "ReportTable",
    "ReportValue",
    "ScoreInfo",
    "plain_report",
    "spread_places",
]

SHARE: Final = "share"
"""Unit of a value from 0 to 1, which people read in percent."""


@dataclass(frozen=True)
class MetricInfo:
    """What people should know of a metric.

    Args:
        title: of it, as it begins a line.
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
        unit: of it; ``SHARE`` for percent.
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


def plain_report(metrics: Mapping[str, Any], infos: Mapping[str, MetricInfo], primary: str) -> Report:
    """Return what can be said of metrics without more knowledge of them: numbers, and lists of objects as tables.

    Args:
        metrics: of the summary of an evaluation.
        infos: name → description; a metric without one has its name as title.
        primary: name of the metric by which a training is judged.
    """
    numbers = {name: value for name, value in metrics.items() if _is_number(value)}
    first = sorted(numbers, key=lambda name: name != primary)
    values = [ReportValue(name, _info(infos, name), numbers[name], name == primary) for name in first]
    tables = [_table(name, rows, infos) for name, rows in metrics.items() if _is_table(rows)]
    return Report(values, tables)


def _table(name: str, rows: Sequence[Mapping[str, Any]], infos: Mapping[str, MetricInfo]) -> ReportTable:
    columns = [(column, _info(infos, column)) for column in rows[0]]
    return ReportTable(name, _info(infos, name).title, columns, rows)


def _info(infos: Mapping[str, MetricInfo], name: str) -> MetricInfo:
    words = "loss" if name == "cost" else name.replace("_", " ")
    return infos.get(name) or MetricInfo(words[:1].upper() + words[1:], mode="")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and each for each in value)


def spread_places(count: int, most: int) -> np.ndarray:
    """Return so many of the numbers from 0 to ``count`` - 1 at most, evenly spread, rising."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
