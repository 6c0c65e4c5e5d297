"""Owns that one supervisor at a time works in a workspace."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from ziggurat.errors import JobError, StorageError

__all__ = ["SUPERVISOR_LOCK", "SupervisorLock"]

SUPERVISOR_LOCK: Final = ".supervisor.lock"
"""File in the workspace that the supervisor's process holds."""


class SupervisorLock:
    """An advisory lock that the system frees when its process ends, however it ends.

    Args:
        workspace: the folder of everything; made where it is not there.

    Raises:
        JobError: where another supervisor is at work.
        StorageError: where the file cannot be made.
    """

    def __init__(self, workspace: Path) -> None:
        path = workspace / SUPERVISOR_LOCK
        self._descriptor = -1
        try:
            workspace.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.close()
            raise JobError(
                f"One studio at a time starts the jobs of {workspace}.",
                received=f"process {holder or 'unknown'} does so",
                advice="Use that one, end it first, or choose another workspace.",
            ) from None
        except OSError as error:
            self.close()
            raise StorageError(
                f"A studio locks its workspace by the file {path}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error

    def close(self) -> None:
        """Let go of the workspace; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
