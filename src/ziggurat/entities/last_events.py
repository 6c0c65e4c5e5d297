"""Space that is reserved for how an attempt ended, so that a worker can say it also where the disk is full.

The file has its blocks before the disk is full, and is overwritten in place. A file system that copies on each write
may refuse even that.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from ziggurat.errors import JobError
from ziggurat.events import AttemptEnded, decode_event, encode_event

__all__ = ["read_last_words", "reserve_last_words", "write_last_words"]

_SIZE_BYTES: Final = 4096
_LONGEST_REASON: Final = 600
"""In characters: JSON may take six bytes for each."""


def reserve_last_words(path: Path) -> None:
    """Reserve the space, or forget what an earlier attempt wrote there; on a full disk, nothing is reserved."""
    _write(path, b"")


def write_last_words(path: Path, ended: AttemptEnded) -> None:
    """Write how an attempt ended; where even that is not possible, nothing happens."""
    _write(path, encode_event(replace(ended, reason=ended.reason[:_LONGEST_REASON])).encode())


def read_last_words(path: Path, since: float) -> AttemptEnded | None:
    """Return how an attempt ended that began at ``since`` or later; None where nothing is written there."""
    try:
        event = decode_event(path.read_bytes()[:_SIZE_BYTES].strip())
    except (OSError, JobError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return event if isinstance(event, AttemptEnded) and event.time >= since else None


def _write(path: Path, line: bytes) -> None:
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(file, line.ljust(_SIZE_BYTES - 1) + b"\n", 0)
            os.fsync(file)
        finally:
            os.close(file)
