"""Events of a job that processes samples in stages: its start, its progress, its end."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections import deque
from typing import Any, Final

from tqdm import tqdm

from ziggurat import __version__
from ziggurat.datasets.creation import Watch
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile, Message, Progress
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.worker.stopping import StopRequest

__all__ = ["EventWatch", "say_end", "say_start"]

_LOG: Final = logging.getLogger(__name__)
_SAY_EVERY_S: Final = 0.5
_LINE_EVERY_S: Final = 10.0
_WORDS: Final = {
    "scan": "scanning",
    "hash": "comparing",
    "read": "reading",
    "assemble": "writing",
    "load": "loading",
    "predict": "predicting",
    "embed": "computing features",
    "compare": "comparing",
    "place": "placing",
}


def say_start(events: EventFile, attempt: int) -> None:
    """Say that an attempt began.

    Args:
        events: are told.
        attempt: its number, from 1.
    """
    started = AttemptStarted(
        time=time.time(),
        attempt=attempt,
        pid=os.getpid(),
        host=socket.gethostname(),
        backend="",
        release=__version__,
    )
    events.write(started)


def say_end(events: EventFile, done: int, outcome: str, code: int, reason: str) -> int:
    """Say how an attempt ended; return its exit code.

    Args:
        events: are told.
        done: samples that were gone through.
        outcome: ``done`` or ``stopped``.
        code: exit code of the worker.
        reason: one sentence.
    """
    events.write(AttemptEnded(time=time.time(), outcome=outcome, exit_code=code, reason=reason, global_step=done))
    return code


class EventWatch(Watch):
    """Turns the progress of a job into events, a bar, and signs of life.

    Args:
        request: to stop.
        events: are told of progress and warnings.
        clock: is told that it goes on.
        progress: how people are shown it: ``bar``, ``lines``, ``none``, or ``auto``.

    Attributes:
        done: samples of the stage that is under way.
    """

    def __init__(self, request: StopRequest, events: EventFile, clock: StepClock, progress: str) -> None:
        self.done = 0
        self._request = request
        self._events = events
        self._clock = clock
        self._mode = ("bar" if sys.stderr.isatty() else "lines") if progress == "auto" else progress
        self._bar: Any = None
        self._stage = ""
        self._said_at = self._line_at = 0.0
        self._seen: deque[tuple[float, int]] = deque(maxlen=40)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage is; ``total`` is 0 while unknown."""
        now = time.time()
        self._clock.trigger_step()
        self.done = done
        if stage != self._stage:
            self._begin(stage, total)
        self._seen.append((now, done))
        ended = total > 0 and done >= total
        if now - self._said_at < _SAY_EVERY_S and not ended:
            return
        self._said_at = now
        rate, left_s = self._rate(now, done, total)
        self._events.write(
            Progress(
                time=now,
                epoch=0,
                global_step=done,
                total_steps=total,
                remaining_s=left_s,
                steps_per_s=rate,
                stage=stage,
            )
        )
        self._show(now, done, total, left_s, ended=ended)

    def message(self, level: str, text: str) -> None:
        """Say a sentence to people."""
        self._events.write(Message(time=time.time(), level=level, text=text))
        (_LOG.warning if level == "warning" else _LOG.info)(text)

    def stop_requested(self) -> bool:
        """Return whether a stop was requested."""
        return self._request.reason is not None

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _begin(self, stage: str, total: int) -> None:
        self.close()
        self._stage = stage
        self._seen.clear()
        if self._mode == "bar":
            self._bar = tqdm(total=total or None, desc=_WORDS.get(stage, stage), unit=" samples", file=sys.stderr)

    def _rate(self, now: float, done: int, total: int) -> tuple[float | None, float | None]:
        began, before = self._seen[0]
        if now <= began or done <= before:
            return None, None
        rate = (done - before) / (now - began)
        return rate, (total - done) / rate if total else None

    def _show(self, now: float, done: int, total: int, left_s: float | None, *, ended: bool) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif self._mode == "lines" and (ended or now - self._line_at >= _LINE_EVERY_S):
            self._line_at = now
            of = f" of {total}" if total else ""
            left = f", {left_s:.0f} s left" if left_s is not None and not ended else ""
            sys.stderr.write(f"{_WORDS.get(self._stage, self._stage)}: {done}{of} samples{left}\n")
