"""The best value that each job of a list reached, and whether a checkpoint still holds it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ziggurat.entities import ENDED_STATES, Job
from ziggurat.entities.best_checkpoint import BestCheckpoint, Mode, is_better, metric_title, primary_metric
from ziggurat.web.columns import Best, best_of
from ziggurat.workspace.checkpoints import best_of_model
from ziggurat.workspace.studio import Studio

__all__ = ["best_values"]

_WORDS: Final[Mapping[Mode, str]] = {"max": "highest", "min": "lowest"}
_TRAINING: Final = ("accuracy", "cost", "loss")


@dataclass(frozen=True)
class _Judged:
    """A training that is judged by a metric.

    Args:
        job: it.
        best: its value.
        mode: whether small or large values are good.
        kept: the checkpoint that holds the value; None where none does.
    """

    job: Job
    best: Best
    mode: Mode
    kept: BestCheckpoint | None

    def is_outdone(self) -> bool:
        """Return whether its curve was better than its best checkpoint is."""
        scalar = self.job.scalars[self.best.tag]
        peak = scalar.maximum if self.mode == "max" else scalar.minimum
        return self.kept is None or is_better(self.mode, peak, self.best.value)


def best_values(studio: Studio, jobs: Sequence[Job]) -> dict[str, Best]:
    """Return id of a job → the best that it reached; jobs without a value are left out.

    The value of a training is that of its best checkpoint. Where its curve was better at a step whose checkpoint is
    gone, the note says so; the curves of those trainings alone are read.
    """
    found: dict[str, Best] = {}
    outdone: dict[str, list[_Judged]] = {}
    for job in jobs:
        judged = _judged(job) if job.kind == "train" else None
        best = judged.best if judged is not None else _newest(job) if job.kind == "train" else best_of(job)
        if best is not None:
            found[job.id] = best
        if judged is not None and judged.is_outdone():
            outdone.setdefault(judged.best.tag, []).append(judged)
    for tag, several in outdone.items():
        for mode in _WORDS:
            chosen = {each.job.id: each for each in several if each.mode == mode}
            peaks = studio.curves.extremes(chosen, tag, largest=mode == "max") if chosen else {}
            found |= {job_id: _with_peak(chosen[job_id], *peak) for job_id, peak in peaks.items()}
    return found


def _judged(job: Job) -> _Judged | None:
    """Return by what a training is judged: what decided on its best checkpoint, or else would decide."""
    kept = best_of_model(job)
    if kept is not None and kept.value is not None and kept.tag in job.scalars:
        best = Best(kept.tag, kept.value, _WORDS[kept.mode], metric_title(kept.tag), kept.checkpoint.epoch)
        return _Judged(job, best, kept.mode, kept)
    metric = primary_metric(job.scalars)
    if metric is None:
        return None
    tag, mode = metric
    peak = job.scalars[tag].maximum if mode == "max" else job.scalars[tag].minimum
    if not math.isfinite(peak):
        return None
    note = "checkpoint not kept" if kept is not None or job.state in ENDED_STATES else "no checkpoint yet"
    return _Judged(job, Best(tag, peak, _WORDS[mode], metric_title(tag), note=note), mode, None)


def _newest(job: Job) -> Best | None:
    """Return the newest value of a training without a validation: nothing tells which one is best."""
    tag = next((tag for tag in _TRAINING if tag in job.scalars and math.isfinite(job.scalars[tag].last)), "")
    return Best(tag, job.scalars[tag].last, "newest", f"{metric_title(tag)}, newest") if tag else None


def _with_peak(judged: _Judged, step: int, epoch: int, value: float) -> Best:
    """Return the value with what is said of the best point of its curve."""
    job, best = judged.job, judged.best
    if judged.kept is None:
        return replace(best, value=value, epoch=epoch)
    # A training that runs is about to save the checkpoint of its newest value.
    is_coming = job.state not in ENDED_STATES and step == job.scalars[best.tag].last_step
    if is_coming or not is_better(judged.mode, value, best.value):
        return best
    return replace(best, note=f"{value:.4g} at epoch {epoch}, checkpoint not kept")
