"""Summary of the events of a job: attempts, progress, latest scalars, checkpoints, outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ziggurat.entities import Divergence
from ziggurat.entities.divergence import divergence_after
from ziggurat.events import (
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
    read_events,
)

__all__ = ["JobHistory", "iterate_events", "read_history"]


@dataclass
class JobHistory:
    """The sum of all events so far; ``apply`` takes them one by one, in their order.

    Args:
        attempts: attempts begun.
        started: the newest attempt's start.
        ended: the newest attempt's end; None while it is under way, or where it was lost.
        error: the error that ended the newest attempt, as JSON values.
        progress: the newest report.
        global_step: steps done, as far as events tell.
        epoch: epoch of that step.
        scalars: newest value of each tag that still holds.
        checkpoints: by name, in the order of saving.
        divergence: that holds; None where the training did not diverge, or recovered.
    """

    attempts: int = 0
    started: AttemptStarted | None = None
    ended: AttemptEnded | None = None
    error: dict[str, Any] | None = None
    progress: Progress | None = None
    global_step: int = 0
    epoch: int = 0
    scalars: dict[str, ScalarLogged] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointSaved] = field(default_factory=dict)
    divergence: Divergence | None = None

    def apply(self, event: Event) -> None:
        """Take one event; those that say nothing of the state are passed over."""
        match event:
            case AttemptStarted():
                self._begin(event)
            case AttemptEnded():
                self.ended = event
                self._reach(event.global_step, event.epoch)
            case ErrorRaised():
                self.error = event.error
            case Progress():
                self.progress = event
                self._reach(event.global_step, event.epoch)
            case EpochEnded():
                self._reach(event.global_step, event.epoch)
            case ScalarLogged():
                self.scalars[event.tag] = event
                self._reach(event.step, event.epoch)
            case CheckpointSaved():
                self.checkpoints[event.name] = event
            case CheckpointRemoved():
                self.checkpoints.pop(event.name, None)
            case DivergenceNoticed():
                self.divergence = divergence_after(event)
            case _:
                pass

    def _begin(self, event: AttemptStarted) -> None:
        self.attempts = max(self.attempts + 1, event.attempt)
        self.started, self.ended, self.error, self.progress = event, None, None, None
        self.global_step = event.global_step
        # What earlier attempts said of later steps no longer holds: the checkpoint remembers what did hold.
        source = self.checkpoints.get(event.checkpoint)
        for tag, point in list(self.scalars.items()):
            if point.step > event.global_step:
                del self.scalars[tag]
                if source is not None and tag in source.scalars:
                    value = float(source.scalars[tag])
                    self.scalars[tag] = ScalarLogged(
                        time=source.time, tag=tag, value=value, step=source.step, epoch=source.epoch
                    )
        self.checkpoints = {name: saved for name, saved in self.checkpoints.items() if saved.step <= event.global_step}
        self.epoch = source.epoch if source is not None else 0
        if self.divergence is not None and self.divergence.noticed_step > event.global_step:
            self.divergence = None

    def _reach(self, step: int, epoch: int) -> None:
        if step >= self.global_step:
            self.global_step, self.epoch = step, epoch


def iterate_events(path: Path, offset: int = 0) -> Iterator[Event]:
    """Yield the events that are there now, from ``offset`` on; memory stays small however long the file is."""
    while True:
        batch, after = read_events(path, offset)
        yield from batch
        if after == offset:
            return
        offset = after


def read_history(path: Path) -> JobHistory:
    """Return what the events in ``events.jsonl`` add up to; a missing file has none."""
    history = JobHistory()
    for event in iterate_events(path):
        history.apply(event)
    return history
