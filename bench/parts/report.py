"""Report of a benchmark: one row per side, with median and range of its rounds and its ratio to a baseline."""

from __future__ import annotations

import os
import platform
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Options", "Report", "Row", "interval", "machine"]


@dataclass(frozen=True)
class Options:
    """What the command was given.

    Args:
        rounds: interleaved rounds a side.
        detail: how much the photographs hold, see ``bench.parts.photographs``.
    """

    rounds: int = 5
    detail: str = "usual"


@dataclass(frozen=True)
class Row:
    """The rounds of one side.

    Args:
        side: its name.
        cpu_us: CPU time an item in each round, of the whole process tree, in microseconds.
        wall_us: wall time an item, likewise.
        is_limit: whether it is a limit and no loader.
    """

    side: str
    cpu_us: list[float]
    wall_us: list[float]
    is_limit: bool = False

    @property
    def median_cpu_us(self) -> float:
        """Median CPU time an item."""
        return statistics.median(self.cpu_us)


@dataclass
class Report:
    """One benchmark.

    Args:
        title: what was measured.
        item: what the figures are for, in the singular.
        baseline: the side that ratios are taken to.
        notes: what one must know to judge: page cache, threads, data.
        rows: the sides.
        left_out: side → why it was not measured.
    """

    title: str
    item: str
    baseline: str
    notes: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report for people; its table is Markdown."""
        base = next((row.median_cpu_us for row in self.rows if row.side == self.baseline), None)
        lines = [self.title, *(f"- {note}" for note in self.notes), ""]
        lines += [
            f"| side | CPU µs / {self.item} | range | wall µs | against {self.baseline} |",
            "|---|--:|--:|--:|--:|",
        ]
        for row in sorted(self.rows, key=lambda one: (one.is_limit, one.median_cpu_us)):
            ratio = f"{base / row.median_cpu_us:.2f}" if base else ""
            side = f"*limit: {row.side}*" if row.is_limit else row.side
            spread = f"{_figure(min(row.cpu_us))} to {_figure(max(row.cpu_us))}"
            wall = _figure(statistics.median(row.wall_us))
            lines.append(f"| {side} | {_figure(row.median_cpu_us)} | {spread} | {wall} | {ratio} |")
        return "\n".join(lines + [f"Left out: {side} ({reason})" for side, reason in self.left_out.items()])

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        rows = [{**row.__dict__, "median_cpu_us": row.median_cpu_us} for row in self.rows]
        return {**self.__dict__, "rows": rows}


def interval(values: np.ndarray, digits: int = 3) -> str:
    """Return the median of rounds and its 95 % interval, from 10,000 samples of them with replacement."""
    random = np.random.default_rng(0)
    medians = np.median(random.choice(values, (10_000, len(values))), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return f"{np.median(values):.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f})"


def machine() -> str:
    """Return one line about the machine."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{cpus} CPUs ({_model()}), load {load}, Python {platform.python_version()}, {platform.platform(terse=True)}"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"
