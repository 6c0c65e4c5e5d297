"""Timeline of a training: new best values, interventions, attempts, divergence; and the state of early stopping.

Numbered events are the flags on the charts: what changed the course of the curves, in the order of their steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from ziggurat.entities import INTERVENTION, RUN_KINDS, Attempt, Curve, Job
from ziggurat.entities.arithmetic import NOT_RECORDED
from ziggurat.entities.best_checkpoint import (
    PRIMARY_METRIC,
    Mode,
    best_checkpoint,
    is_better,
    kept_checkpoints,
    metric_text,
    metric_title,
    primary_metric,
)
from ziggurat.errors import NonFiniteError
from ziggurat.formatting import plural
from ziggurat.layout import JobFolder
from ziggurat.specs.parts import EarlyStopping
from ziggurat.store import Store
from ziggurat.store.records import AuditFilter

__all__ = ["EarlyStoppingState", "TimelineEvent", "early_stopping_state", "job_timeline"]

_MOST: Final = 200
_BESTS: Final = 3
_SHOWN_POINTS: Final = 5000
"""Of a longer curve, ends and extremes of its parts: enough to list the newest bests."""
_ALL_POINTS: Final = 1 << 20
_SAME_S: Final = 3600.0
"""A change by a user takes effect within a tenth of an epoch; an older entry of the audit log is another change."""

_SCHEDULE_WORDS: Final = "follows its schedule"


@dataclass(frozen=True, kw_only=True)
class TimelineEvent:
    """Something that happened to a training.

    Args:
        number: of the flag on the charts, from 1; None for events without one.
        kind: ``started``, ``best``, ``learning_rate``, ``schedule``, ``resumed``, ``divergence``, ``early_stopping``,
            ``done``, ``stopped``, ``paused`` or ``failed``.
        step: ``global_step`` of the moment.
        epoch: that the step is in; None while the length of an epoch is unknown.
        time_s: seconds since 1970; None if unknown.
        text: a few words about the event.
        by: name of the user who caused it; empty for events without a user, or if unknown.
        detail: further words, such as ``checkpoint kept``; may be empty.
        tag: of the metric of a best value; else empty.
        value: best value, or new learning rate; None for others.
    """

    number: int | None = None
    kind: str
    step: int
    epoch: int | None = None
    time_s: float | None = None
    text: str
    by: str = ""
    detail: str = ""
    tag: str = ""
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingState:
    """State of early stopping.

    Args:
        tag: metric that must improve.
        patience: epochs without a gain that end the training.
        waited: epochs without a gain so far.
        best: best value so far; None before the first.
        best_epoch: epoch of it; None before the first.
        has_ended: whether it ended the training.
    """

    tag: str
    patience: int
    waited: int = 0
    best: float | None = None
    best_epoch: int | None = None
    has_ended: bool = False


def job_timeline(store: Store, job: Job) -> list[TimelineEvent]:
    """Return the events of a training, oldest first; empty for other kinds of jobs.

    Args:
        store: that has the job.
        job: a training.
    """
    if job.kind not in RUN_KINDS:
        return []
    attempts = store.curves.attempts(job.id)
    flags = [*_interventions(store, job), *_resumptions(job, attempts), *_divergence(job), *_early_stop(job, attempts)]
    flags = sorted(flags, key=lambda event: (event.step, event.time_s or 0.0))[-_MOST:]
    numbered = [replace(event, number=number) for number, event in enumerate(flags, start=1)]
    found = [*numbered, *_starts(job, attempts), *_bests(store, job), *_ends(job, attempts)]
    return sorted(found, key=lambda event: (_moment(event, found), event.step))


def _moment(event: TimelineEvent, events: Sequence[TimelineEvent]) -> float:
    """Return the time of an event; one without a time comes after all events of earlier steps."""
    if event.time_s is not None:
        return event.time_s
    return max((each.time_s for each in events if each.time_s is not None and each.step <= event.step), default=0.0)


def early_stopping_state(store: Store, job: Job) -> EarlyStoppingState | None:
    """Return the state of early stopping, replayed from the curve of its metric; None if it is off.

    The rule is that of ``ziggurat.engine.callbacks.stopping.EarlyStopping``: at the end of each epoch it compares the
    newest point, if there is a new one.
    """
    rule = _rule(job)
    if rule is None:
        return None
    tag, mode = _judge_of(job, rule)
    empty = EarlyStoppingState(tag=tag, patience=rule.patience)
    length = _epoch_length(job)
    if tag not in job.scalars or not length:
        return empty
    curve = store.curves.curve(job.id, tag, max_points=_ALL_POINTS)
    best: float | None = None
    best_epoch, waited = None, 0
    for value, epoch in _judged(curve, length, job):
        gain = rule.min_delta if mode == "max" else -rule.min_delta
        first = best is None and not math.isnan(value)
        if first or (best is not None and is_better(mode, value, best + gain)):
            best, best_epoch, waited = value, epoch, 0
        else:
            waited += 1
        if waited >= rule.patience:
            break
    has_ended = job.state == "done" and waited >= rule.patience
    return replace(empty, waited=waited, best=best, best_epoch=best_epoch, has_ended=has_ended)


def _rule(job: Job) -> EarlyStopping | None:
    content: Any = job.spec.get("early_stopping")
    if job.kind != "train" or not content:
        return None
    try:
        return EarlyStopping.model_validate({"tag": content} if isinstance(content, str) else content)
    except ValidationError:
        return None


def _judge_of(job: Job, rule: EarlyStopping) -> tuple[str, Mode]:
    """Return the metric of early stopping, and whether its minimum or maximum is best."""
    named = rule.tag, rule.direction
    return (primary_metric(job.scalars) or named) if rule.tag == PRIMARY_METRIC else named


def _judged(curve: Curve, length: int, job: Job) -> list[tuple[float, int]]:
    """Return value and epoch of each point that counts: the newest one at the end of an epoch."""
    newest: dict[int, tuple[float, int]] = {}
    for step, value, epoch in zip(curve.steps.tolist(), curve.values.tolist(), curve.epochs.tolist(), strict=True):
        end = max(1, -(-step // length))
        if end * length <= max(job.global_step, step):
            newest[end] = (value, epoch)
    return [newest[end] for end in sorted(newest)]


def _epoch_length(job: Job) -> int:
    return job.total_steps // job.max_epoch if job.max_epoch else 0


def _epoch(job: Job, step: int) -> int | None:
    length = _epoch_length(job)
    return -(-step // length) if length else None


def _interventions(store: Store, job: Job) -> list[TimelineEvent]:
    asked = store.audit.page(AuditFilter(action="job.hyperparameter", target=job.id, limit=_MOST)).entries
    found = []
    for said in store.curves.messages(job.id, levels=(INTERVENTION,), limit=_MOST):
        is_schedule = _SCHEDULE_WORDS in said.text
        value = None if is_schedule else _last_number(said.text)
        found.append(
            TimelineEvent(
                kind="schedule" if is_schedule else "learning_rate",
                step=said.step,
                epoch=_epoch(job, said.step),
                time_s=said.time,
                text=said.text,
                value=value,
                by=_who(asked, said.time, value),
            )
        )
    return found


def _who(asked: Sequence[Any], time_s: float, value: float | None) -> str:
    """Return the user who requested a change that took effect at a time; empty if the audit log has no such entry."""
    for entry in asked:  # the newest first
        wanted = entry.details.get("value")
        same = wanted is None if value is None else _is_near(wanted, value)
        if same and 0 <= time_s - entry.time <= _SAME_S:
            return str(entry.who)
    return ""


def _is_near(wanted: Any, value: float) -> bool:
    return isinstance(wanted, int | float) and math.isclose(wanted, value, rel_tol=1e-5)


def _last_number(text: str) -> float | None:
    try:
        return float(text.split()[-1])
    except (ValueError, IndexError):
        return None


def _resumptions(job: Job, attempts: Sequence[Attempt]) -> list[TimelineEvent]:
    found = []
    for before, each in itertools.pairwise(attempts):
        why = before.reason or before.outcome
        said = [f"after: {why}"] if why else []
        if each.first_step:
            said.append(f"{NOT_RECORDED.capitalize()}." if each.arithmetic is None else each.arithmetic.text)
        found.append(
            TimelineEvent(
                kind="resumed",
                step=each.first_step,
                epoch=_epoch(job, each.first_step),
                time_s=each.started,
                text=f"Resumed, attempt {each.number}",
                detail="; ".join(each for each in said if each),
            )
        )
    return found


def _divergence(job: Job) -> list[TimelineEvent]:
    held = job.divergence
    if held is None:
        return []
    return [TimelineEvent(kind="divergence", step=held.step, epoch=held.epoch, text=held.text)]


def _early_stop(job: Job, attempts: Sequence[Attempt]) -> list[TimelineEvent]:
    last, rule = (attempts[-1] if attempts else None), _rule(job)
    if last is None or rule is None or not _is_early(job):
        return []
    tag, _ = _judge_of(job, rule)
    return [
        TimelineEvent(
            kind="early_stopping",
            step=job.global_step,
            epoch=_epoch(job, job.global_step),
            time_s=last.ended,
            text="Early stopping",
            detail=f"no better {metric_title(tag)} for {plural(rule.patience, 'epoch')}",
        )
    ]


def _is_early(job: Job) -> bool:
    return job.state == "done" and job.global_step < job.total_steps


def _starts(job: Job, attempts: Sequence[Attempt]) -> list[TimelineEvent]:
    text = f"{_subject(job)} started"
    return [
        TimelineEvent(kind="started", step=each.first_step, epoch=0, time_s=each.started, text=text)
        for each in attempts[:1]
    ]


def _subject(job: Job) -> str:
    return "Program" if job.kind == "program" else "Training"


def _ends(job: Job, attempts: Sequence[Attempt]) -> list[TimelineEvent]:
    last = attempts[-1] if attempts else None
    if last is None or last.ended is None or job.is_active:
        return []
    kind = "paused" if job.paused and job.state == "stopped" else job.state
    words = {"done": f"{_subject(job)} finished", "stopped": "Stopped", "paused": "Paused", "failed": "Failed"}
    if kind not in words or (kind == "failed" and _is_told(job, kind)):
        return []
    return [
        TimelineEvent(
            kind=kind,
            step=last.last_step,
            epoch=_epoch(job, last.last_step),
            time_s=last.ended,
            text=words[kind],
            detail="" if _is_told(job, kind) else last.reason,
        )
    ]


def _is_told(job: Job, kind: str) -> bool:
    """Return whether another event says why the training ended: early stopping, or the divergence that ended it."""
    if kind == "done":
        return _rule(job) is not None and _is_early(job)
    return job.divergence is not None and (job.error or {}).get("error") == NonFiniteError.code


def _bests(store: Store, job: Job) -> list[TimelineEvent]:
    """Return the newest best values of the metric that decides on the best checkpoint."""
    folder = JobFolder(Path(job.folder))
    chosen = best_checkpoint(folder)
    decided: tuple[str, Mode] | None = primary_metric(job.scalars)
    if chosen is not None and chosen.tag in job.scalars:
        decided = chosen.tag, chosen.mode
    if decided is None:
        return []
    tag, mode = decided
    kept = {each.step for each in kept_checkpoints(folder)}
    curve = store.curves.curve(job.id, tag, max_points=_SHOWN_POINTS)
    found = []
    for index in _improvements(curve, mode)[-_BESTS:]:
        step, epoch, value = int(curve.steps[index]), int(curve.epochs[index]), float(curve.values[index])
        found.append(
            TimelineEvent(
                kind="best",
                step=step,
                epoch=epoch,
                time_s=float(curve.times[index]),
                text=f"New best: {metric_text(tag, value)}",
                detail=metric_title(tag) + (", checkpoint kept" if step in kept else ""),
                tag=tag,
                value=value,
            )
        )
    return found


def _improvements(curve: Curve, mode: Mode) -> list[int]:
    """Return the indices of the points that are better than all before; none of an untrained network."""
    counted = (curve.steps > 0) & np.isfinite(curve.values)
    best, found = math.inf if mode == "min" else -math.inf, []
    for index in np.flatnonzero(counted).tolist():
        if is_better(mode, float(curve.values[index]), best):
            best = float(curve.values[index])
            found.append(index)
    return found
