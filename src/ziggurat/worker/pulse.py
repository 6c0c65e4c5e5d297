"""Owns the worker's heartbeat thread: it writes the pulse, looks for requests to stop, and reports a hung step."""

from __future__ import annotations

import faulthandler
import os
import socket
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from ziggurat.engine.callback import Callback
from ziggurat.entities import EXIT_STOPPED, Heartbeat, Pulse, judge_pulse, write_heartbeat
from ziggurat.errors import StorageError
from ziggurat.events import EventFile, Message
from ziggurat.layout import JobFolder
from ziggurat.worker.stopping import ParentWatch, stop_requested

__all__ = ["HeartbeatThread", "StepClock"]

_GRACE_S: Final = 60.0


class StepClock(Callback):
    """Notes when each step ends, for the heartbeat thread to read. Costs one clock reading a step."""

    def __init__(self) -> None:
        self.step_began = time.time()
        self.phase = "starting"
        self.recent_s: deque[float] = deque(maxlen=64)

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
        request_stop: called with a reason when somebody wants the worker to end.
        parent: the parent to end with; None to outlive it.
        every_s: seconds between beats.
        hung_after_s: longest time for one step before it is reported.
    """

    def __init__(
        self,
        folder: JobFolder,
        clock: StepClock,
        request_stop: Callable[[str], None],
        *,
        parent: ParentWatch | None = None,
        every_s: float = 1.0,
        hung_after_s: float = 120.0,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._request_stop = request_stop
        self._parent = parent
        self._every_s = every_s
        self._hung_after_s = hung_after_s
        self._ended = threading.Event()
        self._asked_at: float | None = None
        self._reported_step = -1.0
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Write the first beat and start the thread."""
        self._beat(time.time())
        self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice does nothing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _beat_until_ended(self) -> None:
        while not self._ended.wait(self._every_s):
            now = time.time()
            self._beat(now)
            self._look_for_requests(now)

    def _beat(self, now: float) -> None:
        clock = self._clock
        trainer = getattr(clock, "trainer", None)
        recent = list(clock.recent_s)
        heartbeat = Heartbeat(
            pid=os.getpid(),
            host=socket.gethostname(),
            time=now,
            phase=clock.phase,
            epoch=trainer.epoch_num if trainer else 0,
            global_step=trainer.global_step if trainer else 0,
            step_began=clock.step_began,
            usual_step_s=statistics.median(recent) if recent else 0.0,
        )
        try:
            write_heartbeat(self._folder.heartbeat, heartbeat)
            if judge_pulse(heartbeat, now, hung_after_s=self._hung_after_s) is Pulse.HUNG:
                self._report_hung(heartbeat, now)
        except StorageError:
            pass  # a full disk ends the training where it is needed: at the events and checkpoints

    def _report_hung(self, heartbeat: Heartbeat, now: float) -> None:
        if self._reported_step == heartbeat.step_began:
            return
        self._reported_step = heartbeat.step_began
        text = (
            f"Step {heartbeat.global_step + 1} has been under way for {now - heartbeat.step_began:.0f} s; "
            f"the usual step takes {heartbeat.usual_step_s:.3g} s. The stacks of all threads are in the log."
        )
        file = EventFile(self._folder.events)
        file.write(Message(time=now, level="warning", text=text, step=heartbeat.global_step))
        file.close()
        faulthandler.dump_traceback(file=sys.stderr, all_threads=True)

    def _look_for_requests(self, now: float) -> None:
        reason = stop_requested(self._folder.stop_request)
        if reason is None and self._parent is not None and self._parent.is_gone():
            reason = "the process that started the worker is gone"
        if reason is not None:
            if self._asked_at is None:
                self._asked_at = now
                self._request_stop(reason)
            elif now - self._asked_at > _GRACE_S and self._parent is not None and self._parent.is_gone():
                # Nobody is left who could kill a worker that is stuck in a step.
                os._exit(EXIT_STOPPED)
