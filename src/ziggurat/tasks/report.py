"""What the page of an evaluation shows of a task: metrics with title and unit, tables, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.entities.task_report import (
    SHARE,
    MetricInfo,
    Report,
    ReportChart,
    ReportTable,
    ReportValue,
    ScoreInfo,
)

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
