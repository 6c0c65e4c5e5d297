"""Original of a mirrored job folder: says what the mirror lacks, in replies of limited size."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ziggurat.atomic import atomic_write_text
from ziggurat.cluster.exchange import (
    APPENDED,
    SIZES,
    Append,
    End,
    FileNote,
    Reply,
    Request,
    Sizes,
    end_of,
    group_of,
    mirrored_files,
    note_of,
    read_text,
)
from ziggurat.errors import JobError
from ziggurat.layout import JobFolder

__all__ = ["NodeFolder"]

_SMALL_SHARE: Final = 16
"""So many times smaller than a reply is what small files, such as heartbeats, have of it before all others."""

_SETTLED_NS: Final = 1_000_000_000

_Mark = tuple[int, int, int]


class NodeFolder:
    """The folder of a job on its node, of one attempt.

    Args:
        folder: the job folder.
        attempt: number of the attempt.
        sizes: those of the mirror.
        rank: number of the process; of others than 0, only log and events are mirrored.
    """

    def __init__(self, folder: Path, attempt: int, sizes: Sizes = SIZES, rank: int = 0) -> None:
        self.folder = folder
        self.attempt = attempt
        self._sizes, self._rank = sizes, rank
        self._number = 0
        self._notes: dict[str, tuple[_Mark, FileNote]] = {}

    def exchange(self, request: Request, ended: tuple[int | None] | None = None) -> Reply:
        """Return some of what the mirror lacks: at most 1 MiB, events before the log, and checkpoints last.

        Args:
            request: what the mirror has.
            ended: exit code of the worker, if it had ended before this call.

        Raises:
            JobError: if the request is of another attempt, or the mirror has events that are not in the folder.
            StorageError: if a stop request or hyperparameters cannot be written.
        """
        if request.attempt != self.attempt:
            raise JobError(
                "The request is of another attempt.",
                received=f"attempt {request.attempt}; this is {self.attempt}",
                details={"attempt": self.attempt},
            )
        if request.stop and ended is None:
            self._ask_to_stop(request.stop)
        if ended is None:
            self._set_hyperparameters(request.hyperparameters)
        self._number += 1
        notes = self._current()
        fresh = {path: note for path, note in notes.items() if request.known.get(path) != note.digest}
        pieces = self._small(fresh)
        room = self._sizes.reply_bytes - sum(map(len, pieces.values()))
        appends: dict[str, Append] = {}
        is_whole = not fresh and not request.wanted
        for name in APPENDED:
            append, is_last = self._append(name, request.ends.get(name, End()), room)
            is_whole = is_whole and is_last
            if append is not None:
                appends[name] = append
                room -= len(append.data)
        wanted = [digest for digest in request.wanted if digest not in pieces]
        pieces |= self._pieces(wanted, notes, room)
        return Reply(
            attempt=self.attempt,
            number=self._number,
            appends=appends,
            files=fresh,
            removed=tuple(sorted(set(request.known) - set(notes))),
            pieces=pieces,
            is_whole=is_whole,
            has_ended=ended is not None,
            exit_code=None if ended is None else ended[0],
        )

    def _ask_to_stop(self, reason: str) -> None:
        path = JobFolder(self.folder).stop_request
        if not path.exists():
            atomic_write_text(path, reason.strip() + "\n", "The stop request")

    def _set_hyperparameters(self, text: str) -> None:
        path = JobFolder(self.folder).hyperparameters
        if text != read_text(path):
            atomic_write_text(path, text, "The hyperparameters")

    def _current(self) -> dict[str, FileNote]:
        """Return the files as they are; one that changes or goes meanwhile is left for the next call."""
        found: dict[str, FileNote] = {}
        broken: set[str] = set()
        if self._rank:
            return found
        for path in mirrored_files(self.folder):
            try:
                found[path] = self._note(path)
            except OSError:
                broken.add(group_of(path))
        return {path: note for path, note in found.items() if not group_of(path) or group_of(path) not in broken}

    def _note(self, path: str) -> FileNote:
        stat = os.stat(self.folder / path)
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        known = self._notes.get(path)
        if known is not None and known[0] == mark:
            return known[1]
        note = note_of(self.folder / path, self._sizes.piece_bytes)
        # A file that changed a moment ago may change again without another time stamp or size.
        if time.time_ns() - stat.st_mtime_ns > _SETTLED_NS:
            self._notes[path] = (mark, note)
        return note

    def _small(self, fresh: Mapping[str, FileNote]) -> dict[bytes, bytes]:
        room, found = self._sizes.reply_bytes // _SMALL_SHARE, {}
        for path, note in fresh.items():
            if len(note.pieces) == 1 and note.size_bytes <= room and not group_of(path):
                found |= self._pieces([note.pieces[0]], {path: note}, room)
                room -= note.size_bytes
        return found

    def _append(self, name: str, there: End, room: int) -> tuple[Append | None, bool]:
        """Return the next bytes of a file, and whether they are the last for now."""
        path = self.folder / name
        size = path.stat().st_size if path.exists() else 0
        is_prefix = there.size_bytes <= size and end_of(path, there.size_bytes) == there
        if not is_prefix and name == APPENDED[0]:
            raise JobError(
                "The studio's copy of the events must be a beginning of the node's.",
                received=f"{there.size_bytes} bytes that are not in {path}",
                details={"path": str(path)},
            )
        start = there.size_bytes if is_prefix else 0
        if size == start and is_prefix:
            return None, True
        if room <= 0:
            return None, False
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(min(room, size - start))
        return Append(there, data, is_anew=not is_prefix), start + len(data) == size

    def _pieces(self, wanted: list[bytes], notes: Mapping[str, FileNote], room: int) -> dict[bytes, bytes]:
        places: dict[bytes, tuple[str, int]] = {}
        missing = set(wanted)
        for path, note in notes.items():
            for number, digest in enumerate(note.pieces):
                if digest in missing:
                    places.setdefault(digest, (path, number))
        found: dict[bytes, bytes] = {}
        for digest in wanted:
            if digest not in places:
                continue  # of a file that is not there any more
            path, number = places[digest]
            try:
                with (self.folder / path).open("rb") as file:
                    file.seek(number * self._sizes.piece_bytes)
                    piece = file.read(self._sizes.piece_bytes)
            except OSError:
                continue
            if len(piece) > room:
                break
            found[digest] = piece
            room -= len(piece)
        return found
