"""Heartbeat thread of the worker: writes heartbeats, checks for stop requests, reports a hung step."""

from __future__ import annotations

import faulthandler
import logging
import os
import socket
import statistics
import threading
import time
from collections import deque
from typing import Final

from ziggurat.atomic import check_fence
from ziggurat.engine.callback import Callback
from ziggurat.engine.trainer import Trainer
from ziggurat.entities import EXIT_STOPPED, Heartbeat, Pulse, judge_pulse, write_heartbeat
from ziggurat.entities.parent_watch import ParentWatch
from ziggurat.errors import StorageError
from ziggurat.events import EventFile, Message
from ziggurat.layout import JobFolder
from ziggurat.worker.stopping import StopRequest, stop_requested

__all__ = ["HeartbeatThread", "StepClock"]

_LOG: Final = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 0.5
"""Longest time until a request is seen, however slow the heart beats."""

_PATIENCE_S: Final = 2.0
"""How long a batch may still take after a request to stop."""

_AGAIN_AFTER: Final = 4
"""How many times as long a start must have lasted to be reported again: the first stacks may be those of an import."""

_GRACE_S: Final = 60.0
"""How long a step may still take when no supervisor is left to end the process."""


class StepClock(Callback):
    """Notes when each step ends, for the heartbeat thread to read. Costs one clock reading a step."""

    def __init__(self) -> None:
        self.step_began = time.time()
        self.phase = "starting"
        self.recent_s: deque[float] = deque(maxlen=64)
        self.clocked: Trainer | None = None
        """The trainer whose steps it notes; None before the set-up, which takes seconds and has a heartbeat too."""

    def is_waiting(self) -> bool:
        """Return whether the step under way has no batch yet."""
        return self.clocked is not None and self.clocked.is_waiting

    def setup_graph(self) -> None:
        """Take note of the trainer."""
        self.clocked = self.trainer

    def before_train(self) -> None:
        """The set-up is over."""
        self.phase = "training"
        self.step_began = time.time()

    def trigger_step(self) -> None:
        """A step is over, the next one begins."""
        now = time.time()
        self.recent_s.append(now - self.step_began)
        self.step_began = now

    def trigger_epoch(self) -> None:
        """Slow work between epochs counts as a step of its own."""
        self.step_began = time.time()

    def after_train(self) -> None:
        """No step is under way any more."""
        self.phase = "stopping"
        self.step_began = time.time()


class HeartbeatThread:
    """Beats every ``every_s`` seconds until it is closed.

    Args:
        folder: the job folder.
        clock: what the trainer's steps note.
        request: to stop; the thread asks where it finds the request file or no parent.
        events: get a message when a step is hung.
        parent: the parent to end with; None to outlive it.
        every_s: seconds between beats.
        hung_after_s: longest time for one step before it is reported.
    """

    def __init__(
        self,
        folder: JobFolder,
        clock: StepClock,
        request: StopRequest,
        events: EventFile,
        *,
        parent: ParentWatch | None = None,
        every_s: float = 1.0,
        hung_after_s: float = 120.0,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._request = request
        self._events = events
        self._parent = parent
        self._every_s = every_s
        self._hung_after_s = hung_after_s
        self._ended = threading.Event()
        self._reported_step = -1.0
        self._reported_s = 0.0
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Write the first beat, look for requests that came before, and start the thread."""
        self._beat()
        self._look_for_requests()
        self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice does nothing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _beat_until_ended(self) -> None:
        next_beat_s = time.monotonic() + self._every_s
        while not self._ended.wait(min(_LOOK_EVERY_S, self._every_s)):
            if time.monotonic() >= next_beat_s:
                next_beat_s = time.monotonic() + self._every_s
                self._beat()
            self._look_for_requests()

    def _beat(self) -> None:
        clock, now = self._clock, time.time()
        trainer = clock.clocked
        recent = list(clock.recent_s)
        heartbeat = Heartbeat(
            pid=os.getpid(),
            host=socket.gethostname(),
            time=now,
            phase=clock.phase,
            epoch=trainer.epoch_num if trainer else 0,
            global_step=trainer.global_step if trainer else 0,
            step_began=max(clock.step_began, trainer.progressed_at if trainer else 0.0),
            usual_step_s=statistics.median(recent) if recent else 0.0,
        )
        check_fence()  # a worker that waits for its data writes nothing else for long
        try:
            write_heartbeat(self._folder.heartbeat, heartbeat)
            if judge_pulse(heartbeat, now, hung_after_s=self._hung_after_s) is Pulse.HUNG:
                self._report_hung(heartbeat)
        except (StorageError, OSError):
            pass  # a full disk ends the training where it is needed: at the events and checkpoints

    def _report_hung(self, heartbeat: Heartbeat) -> None:
        lasted_s = heartbeat.time - heartbeat.step_began
        is_starting = heartbeat.phase == "starting"
        is_again = self._reported_step == heartbeat.step_began
        if is_again and not (is_starting and lasted_s >= _AGAIN_AFTER * self._reported_s):
            return
        self._reported_step, self._reported_s = heartbeat.step_began, lasted_s
        if is_starting:
            text = (
                f"The job has been starting for {lasted_s:.0f} s, longer than `hung_after_s` allows: a loop without an "
                "end in the network file, or very much to load. The stacks of all threads are in log.txt."
            )
        else:
            wait = "It waits for a batch. " if self._clock.is_waiting() else ""
            text = (
                f"No step was completed in the last {lasted_s:.0f} s, after "
                f"{heartbeat.global_step} steps; the usual step takes {heartbeat.usual_step_s:.3g} s. "
                f"{wait}The stacks of all threads are in log.txt."
            )
        with self._folder.log.open("a") as log:
            faulthandler.dump_traceback(file=log, all_threads=True)
        _LOG.warning(text)
        self._events.write(Message(time=heartbeat.time, level="warning", text=text, step=heartbeat.global_step))

    def _look_for_requests(self) -> None:
        request, parent_is_gone = self._request, self._parent is not None and self._parent.is_gone()
        reason = stop_requested(self._folder.stop_request)
        if reason is None and parent_is_gone:
            reason = "the process that started the worker is gone"
        if reason is not None:
            request.ask(reason)
        if request.asked_at is None:
            return
        waited_s = time.monotonic() - request.asked_at
        if waited_s > _PATIENCE_S and self._clock.is_waiting():
            request.insist()
        if waited_s > _GRACE_S and parent_is_gone:
            # No supervisor is left to kill a worker that is stuck in a step.
            os._exit(EXIT_STOPPED)
