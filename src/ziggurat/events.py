"""Worker events: their types, their one-line JSON form, and the file that holds them.

``events.jsonl`` is append-only. A reader remembers its byte offset and continues from there; a line counts once its
newline is written. A resumed attempt gives its start in ``AttemptStarted.global_step``: values that earlier attempts
logged for later steps are no longer valid (``effective_scalars`` applies that rule).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.atomic import check_fence
from ziggurat.errors import JobError, StorageError

__all__ = [
    "EVENT_TYPES",
    "ArithmeticRecorded",
    "AttemptEnded",
    "AttemptStarted",
    "CheckpointRemoved",
    "CheckpointSaved",
    "DivergenceNoticed",
    "EpochEnded",
    "ErrorRaised",
    "Event",
    "EventFile",
    "HyperparameterChanged",
    "ImageLogged",
    "Message",
    "Progress",
    "ScalarLogged",
    "UnknownEvent",
    "decode_event",
    "effective_scalars",
    "encode_event",
    "iterate_events",
    "read_events",
]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened.

    Args:
        time: when, in seconds since 1970 (UTC).
    """

    type: ClassVar[str] = ""
    version: ClassVar[int] = 1

    time: float


@dataclass(frozen=True, kw_only=True)
class AttemptStarted(Event):
    """A worker began to execute the job.

    Args:
        attempt: number of the attempt, from 1.
        pid: process of the worker.
        host: name of the machine.
        backend: name of the backend.
        release: version of Ziggurat.
        global_step: steps already done; what earlier attempts said of later steps no longer holds.
        max_epoch: epochs that the job has.
        steps_per_epoch: steps in an epoch.
        checkpoint: name of the checkpoint it went on from; empty at the first start.
    """

    type = "attempt_started"

    attempt: int
    pid: int
    host: str
    backend: str
    release: str
    global_step: int = 0
    max_epoch: int = 0
    steps_per_epoch: int = 0
    checkpoint: str = ""


@dataclass(frozen=True, kw_only=True)
class AttemptEnded(Event):
    """A worker ended by itself. An attempt without this line was lost.

    Args:
        outcome: ``done``, ``stopped`` (can be resumed) or ``failed``.
        exit_code: exit code of the process.
        reason: one sentence: who stopped it, or what failed.
        global_step: steps done.
        epoch: epochs done or begun.
    """

    type = "attempt_ended"

    outcome: str
    exit_code: int
    reason: str = ""
    global_step: int = 0
    epoch: int = 0


@dataclass(frozen=True, kw_only=True)
class ArithmeticRecorded(Event):
    """What decides the last bits of the attempt that started before this line, beside those of its checkpoint.

    Args:
        values: name → text, number or bool: versions, instructions, threads, devices and switches. The state of each
            checkpoint that the attempt writes has the same.
        checkpoint: name of the checkpoint that the attempt went on from; empty for none.
        verdict: ``first`` (no checkpoint), ``same`` (the checkpoint records the same values: the training is exact),
            ``other``, or ``unknown`` (it records none).
        changed: of ``other``, name → [value in the checkpoint, value now]; null where one has none.
        text: the comparison in one sentence; empty for ``first``.
    """

    type = "arithmetic"

    values: dict[str, Any]
    checkpoint: str = ""
    verdict: str = "first"
    changed: dict[str, Any] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class ScalarLogged(Event):
    """One point of a curve.

    Args:
        tag: name of the curve.
        value: the number; NaN and infinities are kept.
        step: ``global_step`` of the point.
        epoch: epoch of the point, from 1.
    """

    type = "scalar"

    tag: str
    value: float
    step: int
    epoch: int


@dataclass(frozen=True, kw_only=True)
class ImageLogged(Event):
    """An image was written beside the events.

    Args:
        tag: name of the image.
        path: file, relative to the job folder.
        step: ``global_step`` of the image.
        epoch: epoch of the image, from 1.
    """

    type = "image"

    tag: str
    path: str
    step: int
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """How far the attempt is.

    Args:
        epoch: the epoch it is in, from 1.
        global_step: steps done.
        total_steps: steps that the job has.
        remaining_s: estimated time left; None while unknown.
        steps_per_s: recent rate.
        data_wait_share: share of the step time spent waiting for data, in [0, 1].
        stage: what is done, where a job has several stages: ``scan``, ``hash``, ``read``, ``assemble`` of a dataset,
            ``load``, ``predict`` of a job that uses a model; else empty.
        max_epoch: epochs that the job has, where that was not known when the attempt began; else 0.
    """

    type = "progress"

    epoch: int
    global_step: int
    total_steps: int
    remaining_s: float | None = None
    steps_per_s: float | None = None
    data_wait_share: float | None = None
    stage: str = ""
    max_epoch: int = 0


@dataclass(frozen=True, kw_only=True)
class EpochEnded(Event):
    """An epoch is complete.

    Args:
        epoch: its number, from 1.
        global_step: steps done.
        duration_s: how long its steps took.
    """

    type = "epoch_ended"

    epoch: int
    global_step: int
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class CheckpointSaved(Event):
    """A checkpoint is complete on disk.

    Args:
        name: its folder name below ``checkpoints/``.
        step: ``global_step`` that it holds.
        epoch: epoch that it holds.
        reason: why it was made, such as ``epoch``, ``stop`` or ``min-validation_error``.
        size_bytes: size on disk.
        scalars: the latest value of each tag at that moment.
    """

    type = "checkpoint_saved"

    name: str
    step: int
    epoch: int
    reason: str = ""
    size_bytes: int = 0
    scalars: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckpointRemoved(Event):
    """A checkpoint was removed by the rules of keeping.

    Args:
        name: its folder name below ``checkpoints/``.
        reason: the rule.
    """

    type = "checkpoint_removed"

    name: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class HyperparameterChanged(Event):
    """A hyperparameter got another value.

    Args:
        name: its name.
        value: the new value.
        previous: the value before.
        step: ``global_step`` from which it holds.
        source: who set it: ``schedule``, ``person``, ``plateau``, …
    """

    type = "hyperparameter"

    name: str
    value: float
    previous: float
    step: int
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class DivergenceNoticed(Event):
    """The losses of a training exploded, or it lost what it had learned; or it recovered from that.

    Args:
        state: ``diverged`` or ``recovered``.
        tag: the loss that shows it.
        value: its first value that does; None where that was no finite number.
        non_finite: ``NaN`` or ``infinite``; empty for a finite value, or if it is not known which of both.
        learning_rate: rate of that step; None if unknown.
        step: ``global_step`` of that value.
        epoch: epoch of that value, from 1.
        best: its best value before; None where there is none.
        best_step: ``global_step`` of the best value.
        best_epoch: epoch of the best value.
        noticed_step: ``global_step`` at which it was noticed.
    """

    type = "divergence"

    state: str
    tag: str
    value: float | None = None
    non_finite: str = ""
    learning_rate: float | None = None
    step: int = 0
    epoch: int = 0
    best: float | None = None
    best_step: int = 0
    best_epoch: int = 0
    noticed_step: int = 0


@dataclass(frozen=True, kw_only=True)
class Message(Event):
    """A sentence for the person who watches.

    Args:
        level: ``info``, ``warning`` or ``error``.
        text: the sentence.
        step: ``global_step`` of the moment.
    """

    type = "message"

    level: str
    text: str
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class ErrorRaised(Event):
    """The error that ended the attempt.

    Args:
        error: JSON shape of the error: ``error``, ``message``, ``rule``, ``received``, ``advice``, ``details``.
        traceback: the whole stack trace, as text.
        step: ``global_step`` of the moment.
    """

    type = "error"

    error: dict[str, Any]
    traceback: str = ""
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class UnknownEvent(Event):
    """A line of a newer release: kept, not understood.

    Args:
        content: the decoded JSON object.
    """

    type = "unknown"

    content: dict[str, Any]


EVENT_TYPES: Final[dict[str, type[Event]]] = {
    kind.type: kind
    for kind in (
        AttemptStarted,
        AttemptEnded,
        ArithmeticRecorded,
        ScalarLogged,
        ImageLogged,
        Progress,
        EpochEnded,
        CheckpointSaved,
        CheckpointRemoved,
        HyperparameterChanged,
        DivergenceNoticed,
        Message,
        ErrorRaised,
    )
}

_FIELD_NAMES: Final[dict[str, frozenset[str]]] = {
    name: frozenset(part.name for part in fields(kind)) for name, kind in EVENT_TYPES.items()
}


def encode_event(event: Event) -> str:
    """Return the event as one line of JSON without its newline. NaN and infinities become strings: JSON has none."""
    content = {"type": event.type, "version": event.version, **asdict(event)}
    return json.dumps(_encodable(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode_event(line: str | bytes) -> Event:
    """Return the event of one line; a type or version that this release does not know becomes ``UnknownEvent``.

    Raises:
        JobError: where the line is no event at all, or lacks what its type has.
    """
    try:
        content = json.loads(line)
        kind = EVENT_TYPES.get(content["type"])
        moment = float(content["time"])
        if kind is None or content.get("version", 1) > kind.version:
            return UnknownEvent(time=moment, content=content)
        known = {name: content[name] for name in _FIELD_NAMES[kind.type] if name in content}
        if kind is ScalarLogged:
            known["value"] = float(known["value"])
        return kind(**known)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise JobError(
            f"A line of events.jsonl is not an event, a JSON object with `type`, `version` and `time`: {line[:200]!r}.",
            advice="The line was damaged after it was written; the others can still be read.",
        ) from error


class EventFile:
    """The append-only file of events, as its one writer sees it.

    A half line that a killed writer left is cut off when the file is opened: no reader has counted it.

    Args:
        path: the file; made where it is not there yet.

    Raises:
        StorageError: where it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            _cut_half_line(self._descriptor)
        except OSError as error:
            raise _not_writable(path, error) from error

    def write(self, *events: Event) -> None:
        """Append events in one system call, so that readers and a kill see whole lines.

        Raises:
            StorageError: where the disk is full or the file is gone.
        """
        data = "".join(encode_event(event) + "\n" for event in events).encode()
        check_fence()
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a nearly full disk takes a part
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            raise _not_writable(self.path, error) from error

    def sync(self) -> None:
        """Force what was written to the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; closing it twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_events(path: Path, offset: int = 0, *, at_most_bytes: int = 8 << 20) -> tuple[list[Event], int]:
    """Read the whole lines from ``offset`` on.

    Args:
        path: an ``events.jsonl``; a missing file has no events.
        offset: bytes already read.
        at_most_bytes: how much to read in one call; a line longer than that is still read whole.

    Returns:
        The events, and the offset for the next call. Damaged lines are passed over.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(at_most_bytes)
            if b"\n" not in data and len(data) == at_most_bytes:
                data += file.readline()
    except FileNotFoundError:
        return [], offset
    end = data.rfind(b"\n") + 1
    events = []
    for line in data[:end].splitlines():
        try:
            events.append(decode_event(line))
        except JobError:
            continue
    return events, offset + end


def iterate_events(path: Path, offset: int = 0) -> Iterator[Event]:
    """Yield the events that are there now, from ``offset`` on; memory stays small however long the file is."""
    while True:
        batch, after = read_events(path, offset)
        yield from batch
        if after == offset:
            return
        offset = after


def effective_scalars(events: Iterable[Event]) -> Iterator[ScalarLogged]:
    """Yield the points that hold: those of steps that a later attempt did again are left out.

    A tag has one point a step: where a step's end was done again, the newest one stands in the place of the first.
    Memory grows with the number of points.
    """
    points: dict[tuple[str, int], ScalarLogged] = {}
    for event in events:
        if isinstance(event, ScalarLogged):
            points[event.tag, event.step] = event
        elif isinstance(event, AttemptStarted):
            points = {place: point for place, point in points.items() if point.step <= event.global_step}
    yield from points.values()


def _encodable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {name: _encodable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(part) for part in value]
    return value


def _cut_half_line(descriptor: int) -> None:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    end = size
    while end > 0:
        start = max(0, end - 65536)
        block = os.pread(descriptor, end - start, start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)


def _not_writable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The events of a job must be written to {path}.",
        received=f"{error.strerror} (errno {error.errno})",
        advice="Free space on the disk or mend the folder's rights, then resume the job.",
    )
