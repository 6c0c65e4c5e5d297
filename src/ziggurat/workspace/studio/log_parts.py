"""The log of a job in parts, the newest first, so that a long one is never held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["LogPart", "read_log", "stream_log"]

_BLOCK_BYTES: Final = 1 << 18


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """A part of a log.

    Args:
        text: of the part.
        start: offset in bytes at which it begins; 0 is the beginning of the log. What is before it ends there.
        end: offset at which it ends.
        size: of the whole log, in bytes.
    """

    text: str = ""
    start: int = 0
    end: int = 0
    size: int = 0


def read_log(path: Path, at_most_bytes: int, before: int | None = None) -> LogPart:
    """Return the part of a log that ends at an offset; it begins at the start of a line where it can.

    Args:
        path: the log; one that is not there is empty.
        at_most_bytes: size of the part.
        before: offset in bytes at which the part ends; the end of the log where it is not given.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            end = size if before is None else max(0, min(before, size))
            start = max(0, end - at_most_bytes)
            file.seek(start)
            data = file.read(end - start)
            file.seek(max(0, start - 1))
            cuts_line = start > 0 and file.read(1) != b"\n"
    except (FileNotFoundError, IsADirectoryError):
        return LogPart()
    newline = data.find(b"\n") + 1
    if cuts_line and 0 < newline < len(data):
        start, data = start + newline, data[newline:]
    return LogPart(text=data.decode("utf-8", "replace"), start=start, end=start + len(data), size=size)


def stream_log(path: Path) -> Iterator[bytes]:
    """Return a whole log as it is now, block by block."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        left = path.stat().st_size
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            left -= len(block)
            yield block
