"""Reading of a growing events file: in small pieces, whatever a line contains."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ziggurat.errors import StorageError
from ziggurat.events import Event, decode_event
from ziggurat.jobs.event_validation import is_valid, without_bad_characters

__all__ = ["FileMark", "Piece", "is_continued", "read_piece"]

_LONGEST_LINE_BYTES: Final = 16 << 20
"""A longer line is no event of ours; it is passed over without being held in memory."""


@dataclass(frozen=True)
class FileMark:
    """What tells a file from another one that took its place.

    Args:
        device: that it is on.
        inode: of the file.
        head: its first bytes.
    """

    device: int
    inode: int
    head: bytes


@dataclass(frozen=True)
class Piece:
    """Some lines of a file.

    Args:
        events: of the lines; damaged ones are left out.
        next_offset: where the next piece begins.
        damaged: lines that were passed over.
        mark: of the file.
    """

    events: tuple[Event, ...]
    next_offset: int
    damaged: int
    mark: FileMark | None


def is_continued(path: Path, offset: int, mark: FileMark | None) -> bool:
    """Return whether a file still begins with the ``offset`` bytes that were read of it, as far as that can be seen.

    A missing file counts as continued: its disk may come back, and what is known of it should stay till then.
    """
    try:
        with _opened(path) as file:
            now = _mark(file)
            if os.fstat(file.fileno()).st_size < offset:
                return False
            if mark is not None and (now.device, now.inode) != (mark.device, mark.inode):
                return False
            if mark is not None and not now.head.startswith(mark.head):
                return False
            return offset == 0 or os.pread(file.fileno(), 1, offset - 1) == b"\n"
    except FileNotFoundError:
        return True


def read_piece(path: Path, offset: int, at_most_bytes: int = 4 << 20) -> Piece:
    """Read whole lines from ``offset`` on; a missing file has none.

    Raises:
        StorageError: where there is something else than a file.
        OSError: where it cannot be read.
    """
    try:
        with _opened(path) as file:
            mark = _mark(file)
            file.seek(offset)
            data = file.read(at_most_bytes)
            if b"\n" not in data and len(data) == at_most_bytes:
                data += file.readline(max(0, _LONGEST_LINE_BYTES - at_most_bytes))
                if not data.endswith(b"\n") and len(data) >= _LONGEST_LINE_BYTES:
                    return Piece((), _behind_the_line(file, offset), 1, mark)
    except FileNotFoundError:
        return Piece((), offset, 0, None)
    events, damaged, at = [], 0, offset
    for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        at += len(line)
        event = _decoded(line)
        if event is not None:
            events.append(event)
        elif line.strip():
            damaged += 1
    return Piece(tuple(events), at, damaged, mark)


def _decoded(line: bytes) -> Event | None:
    try:
        event = decode_event(line) if line.strip() else None
    except Exception:  # a line may hold anything, as deep or as wrong as it likes
        return None
    if event is None or not is_valid(event):
        return None
    return without_bad_characters(event) if b"\\u0000" in line or b"\\ud" in line.lower() else event


def _behind_the_line(file: BinaryIO, offset: int) -> int:
    """Return where the next line begins, or ``offset`` where the long line has no end yet."""
    while block := file.read(1 << 20):
        newline = block.find(b"\n")
        if newline >= 0:
            return file.tell() - len(block) + newline + 1
    return offset


def _opened(path: Path) -> BinaryIO:
    # Not blocking: somebody may have put a pipe in its place, which nobody writes to.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(
            "The events of a job are in a file.", received=str(path), advice="Remove what stands in its place."
        )
    return os.fdopen(descriptor, "rb")


def _mark(file: BinaryIO) -> FileMark:
    found = os.fstat(file.fileno())
    return FileMark(found.st_dev, found.st_ino, os.pread(file.fileno(), 64, 0))
