"""Lock that one process holds at a time; the system releases it however that process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ziggurat.errors import JobError, StorageError

__all__ = ["ProcessLock"]


class ProcessLock:
    """An advisory lock that the system frees when its process ends, however it ends.

    Args:
        path: the lock file; it holds the number of the process.
        taken: returns the error to raise where another process holds it, given that process's number as text.
        rule: what must hold, for the error where the file cannot be made.

    Raises:
        JobError: where another process holds it.
        StorageError: where the file cannot be made.
    """

    def __init__(self, path: Path, taken: Callable[[str], JobError], rule: str) -> None:
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.close()
            raise taken(holder or "unknown") from None
        except OSError as error:
            self.close()
            raise StorageError(
                rule,
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error

    def close(self) -> None:
        """Let go; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
