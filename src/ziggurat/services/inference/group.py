"""A process with a group of its own: what it starts ends with it, and its number stays its own until then."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

import psutil

from ziggurat.errors import StorageError

__all__ = ["ProcessGroup"]

_LOG_BYTES: Final = 1 << 20
_LOOK_S: Final = 0.02


class ProcessGroup:
    """A process that messages go to and come from; its other output goes to a file. Any thread may call any method.

    Args:
        command: starts it, all arguments included.
        environment: of the process.
        log: file that its standard error is appended to; begun anew where it has grown beyond 1 MiB.

    Raises:
        StorageError: where the log cannot be written or no process can be made.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._lock = threading.Lock()
        try:
            with _open_log(log) as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    env=dict(environment),
                    process_group=0,
                )
        except OSError as error:
            raise StorageError(
                f"A process must be started, its output in {log}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.messages_in: IO[bytes] = self._process.stdin
        self.messages_out: IO[bytes] = self._process.stdout
        os.set_blocking(self.messages_in.fileno(), False)

    @property
    def pid(self) -> int:
        """Process number, which is also that of the group."""
        return self._process.pid

    def has_exited(self) -> bool:
        """Return whether the process has ended; what it started may still be there."""
        with self._lock:
            if self._process.returncode is not None:
                return True
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return True
            # While the last of its threads still dies, it cannot be waited for, though nothing in it works any more.
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, as long as its number is surely its own."""
        with self._lock:
            if self._process.returncode is None:
                try:
                    os.killpg(self.pid, number)
                except (ProcessLookupError, PermissionError):
                    pass

    def bury(self, within_s: float) -> int:
        """Wait for the end of the process, kill the group, and return the exit code; negative for a signal.

        Args:
            within_s: how long it may take to end by itself.
        """
        last = time.monotonic() + within_s
        while not self.has_exited() and time.monotonic() < last:
            time.sleep(_LOOK_S)
        self.signal(signal.SIGKILL)
        with self._lock:
            return self._process.wait()


def _open_log(log: Path) -> IO[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    is_long = log.exists() and log.stat().st_size > _LOG_BYTES
    return log.open("wb" if is_long else "ab")
