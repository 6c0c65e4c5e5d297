"""Columns of the job tables: default and chosen ones, their values, and the best value that a job reached."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ziggurat.entities import ENDED_STATES, RUN_KINDS, Job
from ziggurat.entities.best_checkpoint import (
    BestCheckpoint,
    Mode,
    is_better,
    known_mode,
    metric_text,
    metric_title,
    primary_metric,
)
from ziggurat.formatting import as_heading
from ziggurat.specs import present_path
from ziggurat.workspace.checkpoints import best_of_model
from ziggurat.workspace.studio import Studio

__all__ = [
    "Best",
    "Column",
    "best_of",
    "best_values",
    "column_choices",
    "columns_of",
    "metric_mode",
    "result_text",
    "result_texts",
    "value_of",
]


_OWN: Final = ("owner", "priority", "framework", "network", "group", "parent", "epoch", "global_step", "steps_per_s")
_NEVER_CHOSEN: Final = ("kind", "version", "name")
_LARGE_IS_GOOD: Final = re.compile(r"accuracy|f1|iou|map(?!e)|auc|r2|psnr|ssim|dice|precision|recall", re.IGNORECASE)
_SMALL_IS_GOOD: Final = re.compile(r"error|cost|loss|distance|mae|mse|mape", re.IGNORECASE)
_NO_METRICS: Final = ("step", "epoch", "count", "top5")
_MOST_OFFERED: Final = 24
_MOST_NAMED: Final = 300
_DEPTH: Final = 6


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        name: by which the template knows it; of a chosen one, what it shows.
        title: what stands above it.
        sort: what its header sorts by; empty where it does not.
        is_chosen: whether a person chose it.
    """

    name: str
    title: str
    sort: str = ""
    is_chosen: bool = False


@dataclass(frozen=True)
class Best:
    """The best that a job came to.

    Args:
        tag: name of the curve.
        value: its largest or smallest value; of a training, that of its best checkpoint.
        word: ``highest`` or ``lowest``; ``newest`` where no metric tells what is best.
        title: displayed name of the curve; empty for the tag.
        epoch: of the value; None where it is not known.
        note: what else must be known, such as that the checkpoint of a better value was not kept.
        step: of the value; None where it is not known.
    """

    tag: str
    value: float
    word: str
    title: str = ""
    epoch: int | None = None
    note: str = ""
    step: int | None = None

    @property
    def metric(self) -> str:
        """Name of the metric without ``validation``, which the title of the column says: ``Accuracy``."""
        name = (self.title or self.tag).removeprefix("validation ").replace("_", " ")
        return as_heading(name)

    @property
    def text(self) -> str:
        """The value as text; a share as percent."""
        return metric_text(self.tag, self.value)


def metric_mode(tag: str) -> Mode | None:
    """Return whether small or large values of a metric are good; None if that is unknown."""
    known = known_mode(tag)
    if known is not None:
        return known or None
    if _LARGE_IS_GOOD.search(tag):
        return "max"
    return "min" if _SMALL_IS_GOOD.search(tag) else None


_LAST: Final = (Column("elapsed", "Duration", "elapsed"), Column("created", "Created", "created"))
_RUN: Final = (
    Column("source", "Dataset"),
    Column("spark", "Validation"),
    Column("best", "Best"),
    Column("metric", "Metric"),
)
_USUAL: Final[dict[str, tuple[Column, ...]]] = {
    "train": (*_RUN, Column("rate", "Learning rate", "learning_rate"), Column("epoch", "Epoch", "epoch")),
    "model": (Column("network", "Network", "network"), *_RUN, Column("published", "Published as")),
    "dataset": (
        Column("data_kind", "Data", "facts.kind"),
        Column("samples", "Samples", "facts.samples"),
        Column("classes", "Classes", "facts.classes"),
        Column("users", "Used by"),
    ),
    "test": (
        Column("source", "Model"),
        Column("split", "Split", "facts.split"),
        Column("checkpoint", "Checkpoint", "facts.step"),
        Column("result", "Result", "facts.accuracy"),
        Column("metric", "Metric"),
        Column("count", "Samples", "facts.count"),
    ),
}
_USUAL["all"] = _USUAL["train"]


def columns_of(kind: str, chosen: Sequence[str]) -> list[Column]:
    """Return the columns of a tab behind that of the names.

    Args:
        kind: the tab.
        chosen: names of spec fields and curves.
    """
    return [*_USUAL[kind], *(Column(name, name, name, True) for name in chosen), *_LAST]


def value_of(job: Job, name: str, facts: Mapping[str, Any]) -> Any:
    """Return what a chosen column shows: a field of the job, of its spec, what is known of a dataset, or a curve's
    newest value; None for nothing. The store sorts and chooses by the same names.
    """
    if name in _OWN:
        return getattr(job, name)
    value = _at(job.spec, present_path(name))
    if value is None and name.startswith("facts."):
        value = _at(facts, name.removeprefix("facts."))
    if value is None and name in job.scalars:
        return job.scalars[name].last
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return value.get("name") or ", ".join(f"{key} {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def best_of(job: Job) -> Best | None:
    """Return the best that a job without checkpoints came to, such as the accuracy of an evaluation."""
    for tag, is_large in _judges(job):
        summary = job.scalars[tag]
        value = summary.maximum if is_large else summary.minimum
        if math.isfinite(value):
            return Best(tag, value, "highest" if is_large else "lowest")
    return None


def result_text(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return value and metric of an evaluation; two empty texts where it has none.

    Args:
        facts: as ``Jobs.results`` gives them.
    """
    for name in (str(facts.get("primary", "")), "accuracy", "loss", "cost", *facts):
        value = facts.get(name)
        if name not in _NO_METRICS and isinstance(value, int | float):
            title = metric_title(name).removeprefix("training ")
            return metric_text(name, value), as_heading(title)
    return "", ""


def result_texts(results: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return id → value and metric of each evaluation.

    Args:
        results: as ``Jobs.results`` gives them.
    """
    return {job_id: result_text(facts) for job_id, facts in results.items()}


def column_choices(jobs: Iterable[Job], chosen: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return what may be chosen as a column: curves, settings that differ between the jobs, and all further names.

    Args:
        jobs: that are shown.
        chosen: names that are chosen already; they are always offered.
    """
    curves: dict[str, None] = {}
    settings: dict[str, Any] = {}
    differing: set[str] = set()
    for job in jobs:
        curves.update(dict.fromkeys(job.scalars))
        for name, value in _leaves(job.spec, "", _DEPTH):
            if settings.setdefault(name, value) != value:
                differing.add(name)
    differ = [name for name in settings if name in differing and name not in _NEVER_CHOSEN]
    scalars = sorted(set(curves) - set(settings), key=lambda tag: ("val" not in tag, tag))[:_MOST_OFFERED]
    known = {*scalars, *differ[:_MOST_OFFERED]}
    offered = [*differ[:_MOST_OFFERED], *(name for name in chosen if name not in known)]
    others = [name for name in (*_OWN, *settings, *curves) if name not in known and name not in _NEVER_CHOSEN]
    return scalars, offered, list(dict.fromkeys(others))[:_MOST_NAMED]


def _judges(job: Job) -> list[tuple[str, bool]]:
    """Return the curves by which a job is judged, the first of them first, and whether large values are good."""
    found: list[tuple[int, bool, str]] = []
    for tag in job.scalars:
        mode = metric_mode(tag)
        if mode is not None:
            is_validation = tag.lower().startswith(("val", "test"))
            found.append((0 if is_validation else 1, mode == "min", tag))
    return [(tag, not is_small) for _, is_small, tag in sorted(found)]


def _at(values: Any, name: str) -> Any:
    if not isinstance(values, Mapping):
        return None
    if name in values:
        return values[name]
    head, dot, rest = name.partition(".")
    return _at(values.get(head), rest) if dot else None


def _leaves(values: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and depth:  # a check against `Mapping` takes ten times as long
            yield from _leaves(value, f"{prefix}{name}.", depth - 1)
        elif value is not None and value != [] and not (isinstance(value, str) and len(value) > 200):
            yield f"{prefix}{name}", value


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
    outdone: dict[Mode, dict[str, _Judged]] = {}
    for job in jobs:
        judged = _judged(job) if job.kind in RUN_KINDS else None
        best = judged.best if judged is not None else _newest(job) if job.kind in RUN_KINDS else best_of(job)
        if best is not None:
            found[job.id] = best
        if judged is not None and judged.is_outdone():
            outdone.setdefault(judged.mode, {})[job.id] = judged
    for mode, chosen in outdone.items():
        curves = {job_id: each.job.scalars[each.best.tag] for job_id, each in chosen.items()}
        peaks = studio.curves.extremes(curves, largest=mode == "max")
        found |= {job_id: _with_peak(chosen[job_id], *peak) for job_id, peak in peaks.items()}
    return found


def _judged(job: Job) -> _Judged | None:
    """Return by what a training is judged: what decided on its best checkpoint, or else would decide."""
    kept = best_of_model(job)
    if kept is not None and kept.value is not None and kept.tag in job.scalars:
        kind, place = (kept.tag, kept.value, _WORDS[kept.mode], metric_title(kept.tag)), kept.checkpoint
        best = Best(*kind, epoch=place.epoch, step=place.step)
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
        if not job.max_epoch:  # a program that counts steps, and whose checkpoints are its own
            return replace(best, value=value, epoch=epoch or None, step=step, note="")
        return replace(best, value=value, epoch=epoch, step=step)
    # A training that runs is about to save the checkpoint of its newest value.
    is_coming = job.state not in ENDED_STATES and step == job.scalars[best.tag].last_step
    if is_coming or not is_better(judged.mode, value, best.value):
        return best
    return replace(best, note=f"{metric_text(best.tag, value)} at epoch {epoch}, checkpoint not kept")
