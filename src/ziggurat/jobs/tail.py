"""Ingestion of job event files into the store: no event twice, none lost, whatever process is killed.

The store holds the read position of each job's file, updated in the same transaction as the events. Each pass reads
the files in separate threads and waits for them only for a limited time: a file on an unresponsive disk blocks no
other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.events import Message
from ziggurat.jobs.event_lines import FileMark, Piece, is_continued, read_piece
from ziggurat.jobs.ports import JobStore
from ziggurat.layout import JobFolder

__all__ = ["Tail"]

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
        for job in jobs:
            place = self._places.setdefault(job.id, _Place(job.events_offset))
            # One that still reads since an earlier look may have come by its end before the newest lines were there.
            place.is_fresh = place.thread is None or not place.thread.is_alive()
            if place.is_fresh:
                place.is_at_end = False
                place.thread = threading.Thread(
                    target=self._read_on, args=(job.id, JobFolder(Path(job.folder)).events, place, now), daemon=True
                )
                place.thread.start()
        last = time.monotonic() + patience_s
        for job in jobs:
            thread = self._places[job.id].thread
            if thread is not None:
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
        except Exception as error:  # nobody else's job may suffer from it
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
        # Somebody else read this file, or the job is gone.
        job = self._store.jobs.find(job_id)
        place.offset = job.events_offset if job is not None else piece.next_offset
        return False


def _damage_text(lines: int) -> str:
    return f"Damaged lines of events.jsonl were passed over: {lines}."
