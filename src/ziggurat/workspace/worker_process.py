"""Owns starting a worker as a process of its own, and attending it: signals go on to it, its end comes back.

The worker gets a process group of its own, so that Ctrl-C in a terminal reaches it once, from here, as a request to
save and end; and so that everything it started can be ended with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from ziggurat.entities import EXIT_STOPPED
from ziggurat.errors import JobError, StorageError

__all__ = ["WORKER_COMMAND", "AttendedWorker", "start_attended", "start_detached"]

WORKER_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker")
"""Starts the worker; the job folder is added."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start_detached(command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str]) -> int:
    """Start a worker that outlives this process, its output in ``log``; return its process number.

    Raises:
        StorageError: where the log cannot be written.
    """
    output_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), output_flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        return os.posix_spawn(command[0], [*command, str(folder)], environment, file_actions=actions, setsid=True)
    except OSError as error:
        raise StorageError(
            f"The log of a job must be written to {log}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights.",
        ) from error


def start_attended(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    output: IO[Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> AttendedWorker:
    """Start a worker that this process attends until it ends. Call it in the main thread.

    Args:
        command: what starts a worker.
        folder: the job folder.
        environment: of the worker.
        output: where its standard output goes; to this process's own where it is not given.
        say: shows one sentence to the person who pressed Ctrl-C.
    """
    return AttendedWorker([*command, "--end-with", str(os.getpid()), str(folder)], folder, environment, output, say)


class AttendedWorker:
    """A worker of this process. The first signal asks it to save and end, a further Ctrl-C ends it at once."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: IO[Any] | None,
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._say = say
        self._received: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None
        # Before the start: a signal in between must not leave a worker that nobody attends.
        self._before = [(number, signal.signal(number, self._forward)) for number in _SIGNALS]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, env=dict(environment), process_group=0
            )
        except OSError:
            self._restore_signals()
            raise
        if self._received:
            self._process.send_signal(signal.SIGTERM)

    @property
    def pid(self) -> int:
        """Process number of the worker."""
        assert self._process is not None
        return self._process.pid

    def wait(self) -> int:
        """Wait until it ends; return 0 (complete), 75 (stopped, can be resumed) or the code of an error family.

        Raises:
            KeyboardInterrupt: where it ended because of Ctrl-C.
            JobError: where it was killed.
        """
        assert self._process is not None
        try:
            code = self._process.wait()
        finally:
            self._restore_signals()
            _kill_group(self._process.pid)  # what a killed worker left behind: processes that load data
        if signal.SIGINT in self._received and (code in (0, EXIT_STOPPED) or code < 0):
            raise KeyboardInterrupt
        if code < 0:
            raise JobError(
                f"The worker of {self._folder} was killed.",
                received=signal.Signals(-code).name,
                advice=f"Go on from its last checkpoint with: ziggurat resume {self._folder}",
            )
        return code

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self._received.append(number)
        if self._process is None:
            return
        if len(self._received) == 1:
            self._say("Saving and stopping; press Ctrl-C again to end at once and lose what was not saved.")
            self._process.send_signal(signal.SIGTERM)
        elif number == signal.SIGINT:  # a closing terminal sends several others at once
            _kill_group(self._process.pid)

    def _restore_signals(self) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
