"""Ingestion of job event files into the store: no event twice, none lost, whatever process is killed.

The store holds the read position of each job's file, updated in the same transaction as the events. Each pass reads
the files in separate threads and waits for them only for a limited time: a file on an unresponsive disk blocks no
other. Whatever a line contains, an event that reaches the store has the declared types.
"""

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from ziggurat.entities import Job
from ziggurat.errors import StorageError, ZigguratError
from ziggurat.events import EVENT_TYPES, Event, Message, decode_event
from ziggurat.jobs.ports import JobStore
from ziggurat.layout import JobFolder

__all__ = [
    "Tail",
    "is_valid",
]


_PIECE_BYTES: Final = 1 << 20
_PIECES_A_LOOK: Final = 8


@dataclass
class _Place:
    """How far one file is read."""

    offset: int
    mark: FileMark | None = None
    is_at_end: bool = False
    is_fresh: bool = False
    problem: str = ""
    thread: threading.Thread | None = None


class Tail:
    """Reads what the workers of jobs said since the last look.

    Args:
        store: takes the events.
        published: is told the job and the offset up to which its events are in the store, by any thread.
    """

    def __init__(self, store: JobStore, published: Callable[[str, int], None] = lambda job_id, offset: None) -> None:
        self._store = store
        self._published = published
        self._places: dict[str, _Place] = {}

    def look(self, jobs: Sequence[Job], now: float, *, patience_s: float = 2.0) -> None:
        """Take what is new; files that are slow are read on behind the scenes.

        Args:
            jobs: those to look at.
            now: seconds since 1970.
            patience_s: how long to wait for all of them at most.
        """
        threads: list[threading.Thread] = []
        for job in jobs:
            place = self._places.setdefault(job.id, _Place(job.events_offset))
            # One that still reads since an earlier look may have come by its end before the newest lines were there.
            thread = place.thread
            place.is_fresh = thread is None or not thread.is_alive()
            if thread is None or place.is_fresh:
                place.is_at_end = False
                place.thread = thread = threading.Thread(
                    target=self._read_on, args=(job.id, JobFolder(Path(job.folder)).events, place, now), daemon=True
                )
                thread.start()
            threads.append(thread)
        last = time.monotonic() + patience_s
        for thread in threads:  # not `self._places`: a job that is deleted meanwhile is no longer in it
            thread.join(max(0.0, last - time.monotonic()))

    def is_at_end(self, job_id: str) -> bool:
        """Return whether the last look came to the end of a job's file. More may have been written since."""
        place = self._places.get(job_id)
        is_reading = place is not None and place.thread is not None and place.thread.is_alive()
        return place is not None and not is_reading and place.is_fresh and place.is_at_end

    def problem(self, job_id: str) -> str:
        """Return why the last look at a job's file failed; empty where it did not."""
        place = self._places.get(job_id)
        return place.problem if place is not None else ""

    def forget(self, job_id: str) -> None:
        """Do not follow a job any more; a later look begins at the offset in the store."""
        self._places.pop(job_id, None)

    def _read_on(self, job_id: str, path: Path, place: _Place, now: float) -> None:
        try:
            if not is_continued(path, place.offset, place.mark):
                self._store.events.reset(job_id)
                place.offset, place.mark = 0, None
            for _ in range(_PIECES_A_LOOK):
                piece = read_piece(path, place.offset, _PIECE_BYTES)
                place.mark = piece.mark or place.mark
                if piece.next_offset == place.offset:
                    place.is_at_end = True
                    break
                if not self._take(job_id, place, piece, now):
                    break
            place.problem = ""
        except (ZigguratError, OSError) as error:
            place.problem = str(error)
        except Exception as error:  # other jobs must not be affected
            place.problem = f"{type(error).__name__}: {error}"

    def _take(self, job_id: str, place: _Place, piece: Piece, now: float) -> bool:
        events = list(piece.events)
        if piece.damaged:
            text = _damage_text(piece.damaged)
            events.append(Message(time=now, level="warning", text=text))
        if self._store.events.take(job_id, place.offset, piece.next_offset, events):
            place.offset = piece.next_offset
            self._published(job_id, place.offset)
            return True
        # Another process read this file, or the job is gone.
        job = self._store.jobs.find(job_id)
        place.offset = job.events_offset if job is not None else piece.next_offset
        return False


def _damage_text(lines: int) -> str:
    return f"Damaged lines of events.jsonl were passed over: {lines}."


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
    # Not blocking: there may be a pipe without a writer in its place.
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


_LARGEST: Final = 2**63 - 1


def is_valid(event: Event) -> bool:
    """Return whether every field of an event has its declared type, whole numbers fit in 64 bits, and time is finite.

    A damaged or hostile line may be JSON all the same; in a store it would break the lines around it.
    """
    if not math.isfinite(event.time):
        return False
    return all(check(getattr(event, name)) for name, check in _CHECKS.get(event.type, ()))


def without_bad_characters(event: Event) -> Event:
    """Return the event with U+FFFD in the place of NUL and of halves of characters, which not every store takes."""
    return replace(event, **{part.name: _clean(getattr(event, part.name)) for part in fields(event)})


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(name): _clean(part) for name, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_LARGEST <= value <= _LARGEST


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_whole(value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _is_scalars(value: Any) -> bool:
    return type(value) is dict and all(_is_number(part) or part in _NO_NUMBERS for part in value.values())


_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")

_BY_TYPE: Final[dict[str, Callable[[Any], bool]]] = {
    "int": _is_whole,
    "float": _is_number,
    "float | None": lambda value: value is None or _is_finite(value),
    "str": _is_text,
    "dict[str, Any]": _is_object,
    "dict[str, float]": _is_scalars,
}

_CHECKS: Final = {
    name: tuple((part.name, _BY_TYPE[str(part.type)]) for part in fields(kind)) for name, kind in EVENT_TYPES.items()
}
