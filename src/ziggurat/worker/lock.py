"""Owns the lock of a job folder: two workers never train in one folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from ziggurat.errors import JobError, StorageError

__all__ = ["FolderLock"]


class FolderLock:
    """An advisory lock that the system frees when its process ends, however it ends.

    Args:
        path: the lock file; it holds the number of the process.

    Raises:
        JobError: where another process holds it.
        StorageError: where the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.close()
            raise JobError(
                f"One worker at a time trains in {path.parent}.",
                received=f"process {holder or 'unknown'} is at it",
                advice=f"Wait for it to end, or ask it to with: ziggurat stop {path.parent}.",
            ) from None
        except OSError as error:
            self.close()
            raise StorageError(
                f"A worker locks its folder by the file {path}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error

    def close(self) -> None:
        """Let go of the folder; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
