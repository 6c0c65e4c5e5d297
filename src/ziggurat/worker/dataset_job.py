"""Owns the execution of a job that makes a data set: spec to request, progress to events, a stop between chunks."""

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
from ziggurat.datasets.creation import CreationRequest, CreationStopped, Watch, create_dataset
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile, Message, Progress
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import ImageForm, Manifest
from ziggurat.specs import DatasetSpec
from ziggurat.worker.pulse import StepClock
from ziggurat.worker.stopping import StopRequest

__all__ = ["creation_request", "run_creation"]

_LOG: Final = logging.getLogger(__name__)
_SAY_EVERY_S: Final = 0.5
_LINE_EVERY_S: Final = 10.0
_WORDS: Final = {"scan": "scanning", "hash": "comparing", "read": "reading", "assemble": "writing"}


def run_creation(
    spec: DatasetSpec,
    folder: JobFolder,
    request: StopRequest,
    events: EventFile,
    clock: StepClock,
    *,
    attempt: int,
    progress: str,
) -> int:
    """Make the data set, or go on with it; return the exit code.

    Args:
        spec: what was asked.
        folder: the job folder, which becomes the data set.
        request: to stop.
        events: are told of start, progress, warnings and end.
        clock: is told that it goes on.
        attempt: number of this attempt, from 1.
        progress: how people are shown it: ``bar``, ``lines``, ``none``, or ``auto``.

    Raises:
        ZigguratError: where it cannot be made.
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
    watch = _EventWatch(request, events, clock, progress)
    clock.phase = "creating"
    try:
        manifest = create_dataset(creation_request(spec), folder.path, watch)
    except CreationStopped:
        return _end(events, watch, "stopped", EXIT_STOPPED, request.reason or "asked to stop")
    finally:
        watch.close()
        clock.phase = "stopping"
    return _end(events, watch, "done", EXIT_DONE, _summary(manifest))


def creation_request(spec: DatasetSpec) -> CreationRequest:
    """Return in plain values what a spec asks for."""
    sized = spec.size is not None
    splits = spec.splits
    return CreationRequest(
        name=spec.name,
        source=spec.source,
        format=spec.format,
        options=spec.options,
        rule=SplitRule(
            method=splits.method,
            val_share=splits.val_share,
            test_share=splits.test_share,
            seed=spec.seed,
            stratify=splits.stratify,
            pattern=splits.pattern,
            lists=splits.lists,
            max_distance=splits.max_distance,
            min_per_class=splits.min_per_class,
            max_per_class=splits.max_per_class,
        ),
        image=ImageForm(
            encoding="" if spec.encoding == "auto" else spec.encoding,
            resize_mode=spec.resize_mode if sized else "none",
            height_px=spec.size[0] if spec.size is not None else None,
            width_px=spec.size[1] if spec.size is not None else None,
            channels=spec.channels,
            quality=spec.quality,
        ),
        store=spec.store,
        mean=spec.mean,
        near_duplicates=spec.near_duplicates,
        check="" if spec.check == "auto" else spec.check,
        workers=spec.workers,
        spec=spec.model_dump(mode="json", exclude={"workers", "heartbeat_s", "hung_after_s"}),
    )


class _EventWatch(Watch):
    """Turns the progress of a creation into events, a bar, and signs of life."""

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
        self._events.write(Message(time=time.time(), level=level, text=text))
        (_LOG.warning if level == "warning" else _LOG.info)(text)

    def stop_requested(self) -> bool:
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


def _summary(manifest: Manifest) -> str:
    counts = ", ".join(f"{split} {note.count}" for split, note in manifest.splits.items())
    problems = sum(manifest.problems.values())
    said = "no problems" if not problems else "1 problem" if problems == 1 else f"{problems} problems"
    return f"{counts} samples; {said}"


def _end(events: EventFile, watch: _EventWatch, outcome: str, code: int, reason: str) -> int:
    events.write(AttemptEnded(time=time.time(), outcome=outcome, exit_code=code, reason=reason, global_step=watch.done))
    return code
