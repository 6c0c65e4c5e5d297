"""Outcome of an attempt: the end that the worker reported, or the message for an end without a report."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.entities import EXIT_STOPPED
from ziggurat.entities.heartbeat import read_last_words
from ziggurat.entities.shim_process import KILLED_TEXT
from ziggurat.errors import JobError
from ziggurat.events import AttemptEnded, AttemptStarted, CheckpointSaved, Event, decode_event
from ziggurat.jobs.event_tail import is_valid
from ziggurat.layout import JobFolder

__all__ = ["LOST_REASON", "AttemptOutcome", "are_fruitless", "last_events", "outcome_of"]

LOST_REASON: Final = "the worker ended without a word: it was killed, or its machine went down"

_LOOKED_AT_BYTES: Final = 1 << 20
_LONGEST_REASON: Final = 500

_PARENT_KILLED: Final = KILLED_TEXT.removeprefix("Error: ").strip()

_TIMED_OUT: Final = "Timeout ("
_STACK: Final = ("Thread 0x", "Current thread 0x")
_PLACE: Final = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+) in ')
_INSTALLED: Final = re.compile(r"[/\\](site-packages|lib[/\\]python3|ziggurat[/\\](backends|worker|engine))[/\\.]|^<")
"""Files that are not the user's, in the stacks of ``faulthandler``."""


@dataclass(frozen=True, kw_only=True)
class AttemptOutcome:
    """How an attempt ended.

    Args:
        event: of the job: ``end_done``, ``end_stopped``, ``end_failed`` or ``lost``.
        reason: one sentence.
        exit_code: None if unknown.
        time: when, in seconds since 1970; None if not given.
    """

    event: str
    reason: str
    exit_code: int | None
    time: float | None = None


def outcome_of(folder: JobFolder, exit_code: int | None, words: AttemptEnded | None) -> AttemptOutcome:
    """Return how the attempt of a worker that is gone ended.

    Args:
        folder: the job folder.
        exit_code: negative for a signal; None if unknown.
        words: what the worker said at its end; None where it said nothing.
    """
    if words is not None and words.outcome in ("done", "stopped", "failed"):
        code = words.exit_code if exit_code is None else exit_code
        return AttemptOutcome(event=f"end_{words.outcome}", reason=words.reason, exit_code=code, time=words.time)
    if exit_code == EXIT_STOPPED:
        return AttemptOutcome(event="end_stopped", reason="it was asked to stop", exit_code=exit_code)
    if exit_code is not None and exit_code > 0:
        said = _last_error(folder.log)
        reason = said or f"the worker ended with exit code {exit_code} and did not say why; look at its log"
        return AttemptOutcome(event="end_failed", reason=reason, exit_code=exit_code)
    return AttemptOutcome(event="lost", reason=_lost_reason(folder, exit_code), exit_code=exit_code)


def last_events(folder: JobFolder, *, since: float, from_offset: int | None = None) -> AttemptEnded | None:
    """Return the end that the newest attempt told; None where it told none.

    Args:
        folder: the job folder.
        since: when the attempt was started, in seconds since 1970: earlier words are those of an earlier attempt.
        from_offset: size of the events file at that moment, where it is known; then no clock is asked.
    """
    size, data = _end_of(folder.events)
    at = size
    for line in reversed(data.splitlines(keepends=True)):
        at -= len(line)
        event = _decoded(line)
        if isinstance(event, AttemptStarted) or (from_offset is not None and at < from_offset):
            break
        if isinstance(event, AttemptEnded):
            if from_offset is not None or event.time >= since:
                return event
            break
    return read_last_words(folder.last_words, since)  # the disk may have been full


def are_fruitless(folder: JobFolder, kind: str) -> bool:
    """Return whether the last two attempts of a job saved no step beyond those at which they began.

    Args:
        folder: the job folder; one whose events cannot be read counts as fruitful.
        kind: of the job. A dataset continues without checkpoints, as a program does that has none of its own.
    """
    if kind == "dataset":
        return False
    attempts: list[bool] = []
    first_step, has_checkpoints = 0, False
    try:
        with folder.events.open("rb") as lines:
            for line in lines:
                # Most lines are numbers of steps.
                event = _decoded(line) if b'"attempt_started"' in line or b'"checkpoint_saved"' in line else None
                if isinstance(event, AttemptStarted):
                    attempts.append(True)
                    first_step = event.global_step
                elif isinstance(event, CheckpointSaved) and attempts:
                    has_checkpoints = True
                    attempts[-1] = attempts[-1] and event.step <= first_step
    except OSError:
        return False
    return len(attempts) > 1 and all(attempts[-2:]) and (has_checkpoints or kind != "program")


def _lost_reason(folder: JobFolder, exit_code: int | None) -> str:
    if not folder.path.is_dir():
        return f"the worker ended without a word, and its folder {folder.path} is not there"
    if exit_code is None:
        return LOST_REASON
    if exit_code == 0:
        return "the worker ended without a word, as if all were done; look at its log"
    name = _signal_name(-exit_code)
    if _last_error(folder.log) == _PARENT_KILLED:
        return f"the worker ended without a word: {_PARENT_KILLED}"
    advice = "; if no user did that, the machine ran out of memory" if name == "SIGKILL" else "; look at its log"
    return f"the worker ended without a word: it was killed by {name}{advice}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_error(log: Path) -> str:
    _, data = _end_of(log)
    lines = data.decode(errors="replace").splitlines()
    for number, line in reversed(list(enumerate(lines))):
        if line.startswith("Error: "):
            return line.removeprefix("Error: ")[:_LONGEST_REASON]
        if line.startswith(_TIMED_OUT):
            return _build_hung(lines[number:])
    return ""


def _build_hung(lines: Sequence[str]) -> str:
    """Return what is said of a worker that the interpreter's own watchdog ended: it watches nothing but the build."""
    main = max((number for number, line in enumerate(lines) if line.startswith(_STACK)), default=0)
    places = [found for line in lines[main:] if (found := _PLACE.match(line)) is not None]
    users = [found for found in places if not _INSTALLED.search(found["file"])] or places
    where = f": it hung at {users[0]['file']}, line {users[0]['line']}" if users else ""
    return f"building the network took longer than `build_limit_s` allows{where}"[:_LONGEST_REASON]


def _end_of(path: Path) -> tuple[int, bytes]:
    """Return the size of a file and the whole lines of its last part; nothing of one that cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            data = os.pread(descriptor, _LOOKED_AT_BYTES, max(0, size - _LOOKED_AT_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return 0, b""
    if size > len(data):
        data = data[data.find(b"\n") + 1 :]
    return size, data


def _decoded(line: bytes) -> Event | None:
    try:
        event = decode_event(line)
    except (JobError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return event if is_valid(event) else None
