"""Aggregation of a batch of events before anything is written.

Events come from a file that anyone may have written. An event with a value of the wrong type is skipped, like a
damaged line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ziggurat.entities import INTERVENTION
from ziggurat.events import (
    EVENT_TYPES,
    AttemptEnded,
    AttemptStarted,
    CheckpointRemoved,
    CheckpointSaved,
    DivergenceNoticed,
    EpochEnded,
    ErrorRaised,
    Event,
    HyperparameterChanged,
    Message,
    Progress,
    ScalarLogged,
)
from ziggurat.store.columns import clean_text, is_storable_integer

__all__ = ["EventBatch", "Point"]

_BY_HAND: Final = "person"

Point = tuple[float, int, float]
"""Value, epoch, seconds since 1970."""

_LONGEST_NAME: Final = 500
_LONGEST_TEXT: Final = 20_000
_LARGEST_STEP: Final = 1 << 62


@dataclass
class EventBatch:
    """The sum of a batch of events.

    Args:
        attempt: number of the newest attempt.
        global_step: steps done.
        epoch: epoch of that step.
        checkpoint_epochs: epoch of each checkpoint that is known, for an attempt that goes on from one.
        cut: stored points and checkpoints of later steps hold no longer; None where no attempt began.
        points: tag → step → point, to be written; a step's newest point only.
        attempts: number → columns that are new.
        saved: checkpoints to be written, by name.
        removed: names of checkpoints to be removed.
        messages: sentences for people, and what people changed.
        divergence: the newest word on whether the training diverged; None where there is none.
        fields: columns of the job that are new.
    """

    attempt: int
    global_step: int
    epoch: int
    checkpoint_epochs: Mapping[str, int] = field(default_factory=dict)
    cut: int | None = None
    points: dict[str, dict[int, Point]] = field(default_factory=dict)
    attempts: dict[int, dict[str, Any]] = field(default_factory=dict)
    saved: dict[str, CheckpointSaved] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    messages: list[Message] = field(default_factory=list)
    divergence: DivergenceNoticed | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def add(self, events: Iterable[Event]) -> None:
        """Take events in their order."""
        for event in events:
            if type(event) is ScalarLogged:
                self._add_point(event)
            elif _is_sound(event):
                self._apply(event)
        self._note_progress()

    def _add_point(self, event: ScalarLogged) -> None:
        step, epoch, tag = event.step, event.epoch, event.tag
        if type(step) is not int or not 0 <= step < _LARGEST_STEP or not is_storable_integer(epoch):
            return
        if type(tag) is not str or not _is_finite(event.time) or type(event.value) is not float:
            return
        points = self.points.get(tag)
        if points is None:
            points = self.points.setdefault(_short(tag), {})
        points.pop(step, None)
        points[step] = (event.value, epoch, event.time)
        if step >= self.global_step:
            self.global_step, self.epoch = step, epoch

    def _apply(self, event: Event) -> None:
        match event:
            case AttemptStarted():
                self._begin(event)
            case AttemptEnded():
                self._end(event)
            case Progress():
                self._progress(event)
            case EpochEnded():
                self._reach(event.global_step, event.epoch)
            case CheckpointSaved():
                self.saved[_short(event.name)] = event
                self.removed.discard(_short(event.name))
            case CheckpointRemoved():
                self.saved.pop(_short(event.name), None)
                self.removed.add(_short(event.name))
            case Message():
                self.messages.append(event)
            case HyperparameterChanged():
                if event.source == _BY_HAND:
                    self.messages.append(_intervention(event))
            case DivergenceNoticed():
                self.divergence = event
            case ErrorRaised():
                traceback = {"traceback": event.traceback[-_LONGEST_TEXT:]} if event.traceback else {}
                self.fields["error"] = {**event.error, **traceback}
            case _:
                pass

    def _begin(self, event: AttemptStarted) -> None:
        self._note_progress()
        self.attempt = max(self.attempt + 1, event.attempt)
        self.cut = event.global_step if self.cut is None else min(self.cut, event.global_step)
        self.global_step = event.global_step
        self.epoch = self._epoch_of(_short(event.checkpoint))
        self.points = {
            tag: kept
            for tag, points in self.points.items()
            if (kept := {step: point for step, point in points.items() if step <= event.global_step})
        }
        self.saved = {name: saved for name, saved in self.saved.items() if saved.step <= event.global_step}
        self.messages = [each for each in self.messages if not _is_undone(each, event.global_step)]
        if self.divergence is not None and self.divergence.noticed_step > event.global_step:
            self.divergence = None
        self.attempts[self.attempt] = {
            "started": event.time, "ended": None, "outcome": "", "exit_code": None, "reason": "", "pid": event.pid,
            "host": event.host, "first_step": event.global_step, "last_step": event.global_step,
        }  # fmt: skip
        self.fields.update(
            started=event.time, ended=None, exit_code=None, error=None, attempt=self.attempt, stage="",
            max_epoch=event.max_epoch, remaining_s=None, steps_per_s=None, data_wait_share=None,
            total_steps=min(event.max_epoch * event.steps_per_epoch, _LARGEST_STEP),
        )  # fmt: skip

    def _end(self, event: AttemptEnded) -> None:
        self._reach(event.global_step, event.epoch)
        ended = {"ended": event.time, "exit_code": event.exit_code}
        said = {"outcome": event.outcome, "reason": event.reason[:_LONGEST_TEXT]}
        self.attempts.setdefault(self.attempt, {}).update(ended, **said)
        self.fields.update(ended, remaining_s=None, steps_per_s=None, data_wait_share=None, stage="")

    def _progress(self, event: Progress) -> None:
        self._reach(event.global_step, event.epoch)
        for name in ("remaining_s", "steps_per_s", "data_wait_share"):
            value = getattr(event, name)
            self.fields[name] = float(value) if _is_finite(value) else None
        self.fields["stage"] = event.stage
        if event.total_steps > 0:
            self.fields["total_steps"] = event.total_steps

    def _reach(self, step: int, epoch: int) -> None:
        if step >= self.global_step:
            self.global_step, self.epoch = step, epoch

    def _note_progress(self) -> None:
        self.fields.update(global_step=self.global_step, epoch=self.epoch)
        if self.attempt:
            self.attempts.setdefault(self.attempt, {})["last_step"] = self.global_step

    def _epoch_of(self, checkpoint: str) -> int:
        saved = self.saved.get(checkpoint)
        return saved.epoch if saved is not None else self.checkpoint_epochs.get(checkpoint, 0)


def _is_undone(message: Message, cut: int) -> bool:
    """Return whether a message holds no longer where steps after ``cut`` are done again."""
    return message.level == INTERVENTION and message.step > cut


def _intervention(event: HyperparameterChanged) -> Message:
    name = event.name.replace("_", " ")
    text = f"{name[:1].upper()}{name[1:]} set by hand: {event.previous:g} to {event.value:g}"
    return Message(time=event.time, level=INTERVENTION, text=text, step=event.step)


def _short(name: str) -> str:
    return clean_text(name)[:_LONGEST_NAME]  # an index does not hold texts of any length


def _is_finite(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or is_storable_integer(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_CHECKS: Final = {"int": is_storable_integer, "float": _is_finite, "str": _is_text}
_FIELD_CHECKS: Final = {
    kind: [
        (part.name, _CHECKS.get(str(part.type), _is_object))
        for part in fields(kind)
        if str(part.type) != "float | None"  # an estimate that is no number is none
    ]
    for kind in EVENT_TYPES.values()
}


def _is_sound(event: Event) -> bool:
    return all(check(getattr(event, name)) for name, check in _FIELD_CHECKS.get(type(event), ()))
