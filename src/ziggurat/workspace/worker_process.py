"""Worker started as a process and supervised: signals are forwarded, its exit code is returned.

The worker gets a process group of its own, so that Ctrl-C in a terminal reaches it once, from here, as a request to
save and end; and so that everything it started can be ended with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

import psutil

from ziggurat.entities import EXIT_STOPPED, read_heartbeat
from ziggurat.entities.processes import shim_of, start_here
from ziggurat.errors import JobError
from ziggurat.layout import JobFolder

__all__ = ["WORKER_COMMAND", "AttendedWorker", "kill_worker", "start_attended"]

WORKER_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker")
"""Starts the worker; the job folder is added."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WATCH_S: Final = 0.2
_ENDS_WITHIN_S: Final = 15.0
_ALLOWANCE_S: Final = 1.0


def start_attended(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    output: IO[Any] | int | None = None,
    errors: IO[Any] | int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> AttendedWorker:
    """Start a worker that this process attends until it ends; signals are forwarded if this is the main thread.

    Args:
        command: what starts a worker.
        folder: the job folder.
        environment: of the worker.
        output: where its standard output goes; to this process's own where it is not given.
        errors: where its standard error goes; to this process's own if None.
        say: shows one sentence to the person who pressed Ctrl-C.
    """
    words = [*command, "--end-with", str(os.getpid()), str(folder)]
    return AttendedWorker(words, folder, environment, (output, errors), say)


class AttendedWorker:
    """A worker of this process. The first signal asks it to save and end, a further Ctrl-C ends it at once."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        outputs: tuple[IO[Any] | int | None, IO[Any] | int | None],
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._say = say
        self._received: list[int] = []
        self._pid = 0
        # Pre-flight check: a signal in between must not leave an unmonitored worker.
        # Only the main thread may set handlers, and only there a signal interrupts anything.
        numbers = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
        self._before = [(number, signal.signal(number, self._forward)) for number in numbers]
        try:
            pid, self._shim = start_here(command, environment, outputs[0], errors=outputs[1])
        except OSError:
            self._restore_signals()
            raise
        self._pid = pid
        if self._received:
            self._send(signal.SIGTERM)

    @property
    def pid(self) -> int:
        """Process number of the worker."""
        return self._pid

    def wait(self, watch: Callable[[], None] | None = None) -> int:
        """Wait until it ends; return 0 (complete), 75 (stopped, can be resumed) or the code of an error family.

        Args:
            watch: called several times a second meanwhile; if it raises, the worker is asked to save and end.

        Raises:
            KeyboardInterrupt: where it ended because of Ctrl-C.
            JobError: where it was killed.
        """
        try:
            code = self._ended(watch)
        finally:
            self._restore_signals()
        if signal.SIGINT in self._received and (code in (0, EXIT_STOPPED) or code < 0):
            raise KeyboardInterrupt
        if code < 0:
            raise JobError(
                f"The worker of {self._folder} was killed by {signal.Signals(-code).name}.",
                advice=f"Go on from its last checkpoint with: ziggurat resume {self._folder}",
            )
        return code

    def _ended(self, watch: Callable[[], None] | None) -> int:
        """Return the exit code of the shim: it ends as the worker ended, once nothing is left of that."""
        if watch is None:
            return self._shim.wait()
        try:
            while True:
                try:
                    return self._shim.wait(_WATCH_S)
                except subprocess.TimeoutExpired:
                    watch()
        except BaseException:
            self._send(signal.SIGTERM)
            self._shim.wait()
            raise

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self._received.append(number)
        if not self._pid:
            return
        if len(self._received) == 1:
            self._say("Saving and stopping; press Ctrl-C again to end at once and lose what was not saved.")
            self._send(signal.SIGTERM)
        elif number == signal.SIGINT:  # a closing terminal sends several others at once
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        # The shim ends what the worker leaves; while it is there, the number of the worker is no other process's.
        if self._shim.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _restore_signals(self) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)


def kill_worker(folder: JobFolder) -> None:
    """Kill the worker in a folder and all that it started, and wait for its end; one that has ended is no error.

    Raises:
        JobError: where it is on another machine, or does not end.
    """
    heartbeat = read_heartbeat(folder.heartbeat)
    if heartbeat is None:
        return
    if heartbeat.host != socket.gethostname():
        raise JobError(
            f"The worker of {folder.path} is on {heartbeat.host}, and one is killed on its own machine.",
            advice=f"Call there: ziggurat stop {folder.path} --now",
        )
    with contextlib.suppress(psutil.NoSuchProcess):
        worker = psutil.Process(heartbeat.pid)
        if worker.create_time() > heartbeat.time + _ALLOWANCE_S:
            return  # another process with the same number
        shim = shim_of(heartbeat.pid)
        awaited = worker if shim is None else psutil.Process(shim)
        started = worker.children(recursive=True)
        worker.kill()
        for process in started if shim is None else []:  # a shim ends them itself, also those that escaped
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        _, left = psutil.wait_procs([awaited], _ENDS_WITHIN_S)
        if any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in left):
            raise JobError(
                f"Process {heartbeat.pid} of the worker is still there after it was killed: a disk or a "
                "driver holds it.",
                advice="Look at that disk or driver; the process ends with what it waits for.",
            )
