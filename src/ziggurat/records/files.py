"""Plain data files: written once sequentially, and read at any offset by any number of threads."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

__all__ = ["DataFile"]


class DataFile:
    """A file open for reading at given places.

    The position is part of each read, so that threads and forked processes share it without a lock.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size_bytes = os.fstat(handle).st_size
        self._handle = handle
        self._close = weakref.finalize(self, os.close, handle)
        self._close.atexit = False

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset`` on; fewer where the file ends before."""
        data = os.pread(self._handle, size, offset)
        while len(data) < size:  # the system gives at most 2 GiB at a time
            more = os.pread(self._handle, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        """Close the file."""
        self._close()

    def __reduce__(self) -> Any:
        raise TypeError("an open file does not cross process borders; its store opens it anew")
