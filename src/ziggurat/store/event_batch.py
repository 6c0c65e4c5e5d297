"""Aggregation of a batch of events before anything is written.

Events come from a file that anyone may have written. An event with a value of the wrong type is skipped, like a
damaged line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ziggurat.entities import INTERVENTION
from ziggurat.entities.job_history import JobHistory
from ziggurat.events import (
    EVENT_TYPES,
    AttemptEnded,
    AttemptStarted,
    CheckpointRemoved,
    CheckpointSaved,
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
class _Points:
    """All points of a batch: tag → step → point, a step's newest one only."""

    by_tag: dict[str, dict[int, Point]] = field(default_factory=dict)

    def add(self, event: ScalarLogged) -> None:
        points = self.by_tag.get(event.tag)
        if points is None:
            points = self.by_tag.setdefault(_short(event.tag), {})
        points.pop(event.step, None)
        points[event.step] = (event.value, event.epoch, event.time)

    def cut(self, step: int, source: CheckpointSaved | None) -> None:
        self.by_tag = {
            tag: kept
            for tag, points in self.by_tag.items()
            if (kept := {each: point for each, point in points.items() if each <= step})
        }


class EventBatch:
    """The sum of a batch of events, as the tables have it.

    Args:
        attempt: number of the newest attempt before the batch.
        global_step: steps done before it.
        epoch: epoch of that step.
        checkpoint_epochs: epoch of each checkpoint that is known, for an attempt that goes on from one.

    Attributes:
        history: fold of the events; where an attempt began, its ``cut`` says what is stored and holds no longer.
        attempts: number → columns that are new.
        removed: names of checkpoints to be removed.
        messages: sentences for people, and what people changed.
        fields: columns of the job that are new.
    """

    def __init__(
        self, attempt: int, global_step: int, epoch: int, checkpoint_epochs: Mapping[str, int] | None = None
    ) -> None:
        self._points = _Points()
        self.history = JobHistory(self._points, attempt, global_step, epoch, checkpoint_epochs or {})
        self.attempts: dict[int, dict[str, Any]] = {}
        self.removed: set[str] = set()
        self.messages: list[Message] = []
        self.fields: dict[str, Any] = {}

    @property
    def points(self) -> Mapping[str, Mapping[int, Point]]:
        """Tag → step → point, to be written; a step's newest point only."""
        return self._points.by_tag

    def add(self, events: Iterable[Event]) -> None:
        """Take events in their order."""
        apply = self.history.apply
        for event in events:
            if type(event) is ScalarLogged:
                if _is_point(event):
                    apply(event)
            elif _is_sound(event):
                self._apply(event)
        self._note_progress()

    def _apply(self, event: Event) -> None:
        match event:
            case AttemptStarted():
                self._note_progress()  # of the attempt before
                self.history.apply(replace(event, checkpoint=_short(event.checkpoint)))
                self._begin(event)
            case CheckpointSaved():
                self.removed.discard(_short(event.name))
                self.history.apply(replace(event, name=_short(event.name)))
            case CheckpointRemoved():
                self.removed.add(_short(event.name))
                self.history.apply(replace(event, name=_short(event.name)))
            case Message():
                self.messages.append(event)
            case HyperparameterChanged():
                if event.source == _BY_HAND:
                    self.messages.append(_intervention(event))
            case _:
                self.history.apply(event)
                self._note(event)

    def _begin(self, event: AttemptStarted) -> None:
        self.messages = [each for each in self.messages if not _is_undone(each, event.global_step)]
        self.attempts[self.history.attempt] = {
            "started": event.time, "ended": None, "outcome": "", "exit_code": None, "reason": "", "pid": event.pid,
            "host": event.host, "first_step": event.global_step, "last_step": event.global_step,
        }  # fmt: skip
        self.fields.update(
            started=event.time, ended=None, exit_code=None, error=None, attempt=self.history.attempt, stage="",
            max_epoch=event.max_epoch, remaining_s=None, steps_per_s=None, data_wait_share=None,
            total_steps=min(event.max_epoch * event.steps_per_epoch, _LARGEST_STEP),
        )  # fmt: skip

    def _note(self, event: Event) -> None:
        """Note the columns that say what an event says."""
        match event:
            case AttemptEnded():
                ended = {"ended": event.time, "exit_code": event.exit_code}
                said = {"outcome": event.outcome, "reason": event.reason[:_LONGEST_TEXT]}
                self.attempts.setdefault(self.history.attempt, {}).update(ended, **said)
                self.fields.update(ended, remaining_s=None, steps_per_s=None, data_wait_share=None, stage="")
            case Progress():
                for name in ("remaining_s", "steps_per_s", "data_wait_share"):
                    value = getattr(event, name)
                    self.fields[name] = float(value) if _is_finite(value) else None
                self.fields["stage"] = event.stage
                if event.total_steps > 0:
                    self.fields["total_steps"] = event.total_steps
            case ErrorRaised():
                traceback = {"traceback": event.traceback[-_LONGEST_TEXT:]} if event.traceback else {}
                self.fields["error"] = {**event.error, **traceback}
            case _:
                pass

    def _note_progress(self) -> None:
        self.fields.update(global_step=self.history.global_step, epoch=self.history.epoch)
        if self.history.attempt:
            self.attempts.setdefault(self.history.attempt, {})["last_step"] = self.history.global_step


def _is_point(event: ScalarLogged) -> bool:
    step = event.step
    return (
        type(step) is int
        and 0 <= step < _LARGEST_STEP
        and is_storable_integer(event.epoch)
        and type(event.tag) is str
        and _is_finite(event.time)
        and type(event.value) is float
    )


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
