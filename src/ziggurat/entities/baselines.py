"""What simple models reach beside a training, as its folder keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities.best_checkpoint import Mode, is_better, metric_text
from ziggurat.layout import JobFolder

__all__ = ["JobBaseline", "JobBaselines", "baselines_line", "read_baselines", "write_baselines"]

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class JobBaseline:
    """The result of a simple model on the validation split.

    Args:
        name: such as ``linear``.
        title: for people, in lower case.
        scores: name of a metric → value; empty where there is none.
        reason: why there is none, or what restricts it; empty where nothing is to be said.
    """

    name: str
    title: str
    scores: Mapping[str, float]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class JobBaselines:
    """The results of simple models beside that of a training.

    Args:
        metric: primary metric of the task.
        mode: whether small or large values of it are good.
        title: of the metric, for people.
        value: of the training, at its best checkpoint; None where it is not known.
        checkpoint: name of that checkpoint; empty where there is none.
        baselines: the simple models.
        reason: why they were not computed; empty where they were.
    """

    metric: str
    mode: Mode
    title: str
    value: float | None
    checkpoint: str
    baselines: tuple[JobBaseline, ...]
    reason: str = ""

    @property
    def best(self) -> JobBaseline | None:
        """The baseline with the best value of the metric; None where none has one."""
        best: JobBaseline | None = None
        for each in self.baselines:
            if self.metric in each.scores and (
                best is None or is_better(self.mode, each.scores[self.metric], best.scores[self.metric])
            ):
                best = each
        return best

    @property
    def line(self) -> str:
        """Return both in one line: ``RMSE 2.17 against 2.23 (gradient boosting)``; empty where one is not known.

        What could not be computed follows, with the reason.
        """
        best = self.best
        if best is None or self.value is None:
            return ""
        own, other = (metric_text(self.metric, value) for value in (self.value, best.scores[self.metric]))
        missing = [f"{each.title}: {each.reason}" for each in self.baselines if not each.scores and each.reason]
        line = f"{self.title[0].upper()}{self.title[1:]} {own} against {other} ({best.title})"
        return f"{line}. No {' No '.join(missing)}" if missing else line


def read_baselines(job: JobFolder) -> JobBaselines | None:
    """Return what a training kept; None where there is nothing, or it is damaged."""
    try:
        content: dict[str, Any] = json.loads(job.baselines.read_text(encoding="utf-8"))
        if content.pop("version") != _VERSION:
            return None
        baselines = tuple(JobBaseline(**each) for each in content.pop("baselines"))
        return JobBaselines(**content, baselines=baselines)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def baselines_line(job: JobFolder) -> str:
    """Return the result of a training beside the best of simple models, in one line; empty where there is none."""
    found = read_baselines(job)
    return "" if found is None else found.line


def write_baselines(job: JobFolder, found: JobBaselines) -> None:
    """Keep them in the folder of a job.

    Raises:
        StorageError: where that is not possible.
    """
    content = {"version": _VERSION, **asdict(found)}
    atomic_write_text(job.baselines, json.dumps(content, indent=1) + "\n", "The baselines of a job")
