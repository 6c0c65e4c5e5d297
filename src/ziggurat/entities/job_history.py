"""The one fold of a job's events: attempt, step, epoch, checkpoints, divergence, and what a resume takes back.

``ziggurat status JOB`` folds all events of a file; the store folds each new batch onto what it has stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ziggurat.entities.jobs import DIVERGED, divergence_of_error
from ziggurat.events import (
    ArithmeticRecorded,
    AttemptEnded,
    AttemptStarted,
    CheckpointRemoved,
    CheckpointSaved,
    DivergenceNoticed,
    EpochEnded,
    ErrorRaised,
    Event,
    Progress,
    ScalarLogged,
    iterate_events,
)

__all__ = ["JobHistory", "NewestScalars", "Scalars", "read_history"]


class Scalars(Protocol):
    """The points of a job's curves, as many of them as the reader needs."""

    def add(self, event: ScalarLogged) -> None:
        """Take a point."""
        ...

    def cut(self, step: int, source: CheckpointSaved | None) -> None:
        """Take back the points of later steps: a new attempt goes on from ``step``.

        Args:
            step: of the checkpoint.
            source: the checkpoint; None where it is not known.
        """
        ...


@dataclass
class NewestScalars:
    """The newest point of each tag that holds; memory stays small however long the file is.

    Args:
        by_tag: tag → point.
    """

    by_tag: dict[str, ScalarLogged] = field(default_factory=dict)

    def add(self, event: ScalarLogged) -> None:
        """Take a point."""
        self.by_tag[event.tag] = event

    def cut(self, step: int, source: CheckpointSaved | None) -> None:
        """Take back later points; the checkpoint remembers which value of their tags held before them."""
        for tag, point in list(self.by_tag.items()):
            if point.step <= step:
                continue
            del self.by_tag[tag]
            if source is not None and tag in source.scalars:
                value = float(source.scalars[tag])
                self.by_tag[tag] = ScalarLogged(
                    time=source.time, tag=tag, value=value, step=source.step, epoch=source.epoch
                )


@dataclass
class JobHistory:
    """The sum of the events so far; ``apply`` takes them one by one, in their order.

    Args:
        scalars: takes the points of the curves.
        attempt: number of the newest attempt; 0 before the first.
        global_step: steps done, as far as events tell.
        epoch: epoch of that step.
        stored_epochs: epoch of each checkpoint that is known of events before the first that is applied here.
        cut: what events said earlier of steps after this one holds no longer; None where no attempt began here.
        started: the newest attempt's start.
        ended: the newest attempt's end; None while it is under way, or where it was lost.
        error: that ended the newest attempt.
        progress: the newest report of the newest attempt.
        checkpoints: by name, in the order of saving.
        arithmetic: number of an attempt → its arithmetic, of the attempts that recorded one.
        divergence: the newest word on whether the training diverged; None where there is none that holds. A divergence
            stays as it was first noticed until the run recovers, whatever goes wrong after it.
        has_recovered: whether it recovered from a divergence, be it one of earlier events.
    """

    scalars: Scalars
    attempt: int = 0
    global_step: int = 0
    epoch: int = 0
    stored_epochs: Mapping[str, int] = field(default_factory=dict)
    cut: int | None = None
    started: AttemptStarted | None = None
    ended: AttemptEnded | None = None
    error: ErrorRaised | None = None
    progress: Progress | None = None
    checkpoints: dict[str, CheckpointSaved] = field(default_factory=dict)
    divergence: DivergenceNoticed | None = None
    has_recovered: bool = False
    arithmetic: dict[int, ArithmeticRecorded] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Take one event; those that say nothing of the state are passed over."""
        match event:
            case ScalarLogged():
                self.scalars.add(event)
                self.reach(event.step, event.epoch)
            case AttemptStarted():
                self._begin(event)
            case AttemptEnded():
                self.ended = event
                self.reach(event.global_step, event.epoch)
            case ErrorRaised():
                self.error = event
                told = divergence_of_error(event.error, event.time, max(1, self.epoch))
                if told is not None:
                    self._note_divergence(told)
            case Progress():
                known = 0 if self.progress is None else self.progress.max_epoch
                self.progress = event if event.max_epoch or not known else replace(event, max_epoch=known)
                self.reach(event.global_step, event.epoch)
            case EpochEnded():
                self.reach(event.global_step, event.epoch)
            case CheckpointSaved():
                self.checkpoints[event.name] = event
            case CheckpointRemoved():
                self.checkpoints.pop(event.name, None)
            case ArithmeticRecorded():
                self.arithmetic[self.attempt] = event
            case DivergenceNoticed():
                self._note_divergence(event)
            case _:
                pass

    def reach(self, step: int, epoch: int) -> None:
        """Take notice of a step that was done."""
        if step >= self.global_step:
            self.global_step, self.epoch = step, epoch

    def _note_divergence(self, event: DivergenceNoticed) -> None:
        self.has_recovered = self.has_recovered or event.state != DIVERGED
        if event.state != DIVERGED or self.divergence is None or self.divergence.state != DIVERGED:
            self.divergence = event

    def _begin(self, event: AttemptStarted) -> None:
        step, source = event.global_step, self.checkpoints.get(event.checkpoint)
        self.attempt = max(self.attempt + 1, event.attempt)
        self.started, self.ended, self.error, self.progress = event, None, None, None
        self.cut = step if self.cut is None else min(self.cut, step)
        self.global_step = step
        self.epoch = source.epoch if source is not None else self.stored_epochs.get(event.checkpoint, 0)
        self.scalars.cut(step, source)
        self.checkpoints = {name: saved for name, saved in self.checkpoints.items() if saved.step <= step}
        if self.divergence is not None and self.divergence.noticed_step > step:
            self.divergence = None


def read_history(path: Path) -> tuple[JobHistory, Mapping[str, ScalarLogged]]:
    """Return what the events of a file add up to, and the newest point of each tag; a missing file has none."""
    scalars = NewestScalars()
    history = JobHistory(scalars)
    for event in iterate_events(path):
        history.apply(event)
    return history, scalars.by_tag
