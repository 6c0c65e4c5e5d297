"""Copy of a job folder that follows the original on another machine."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.cluster.exchange import (
    APPENDED,
    SIZES,
    Append,
    FileNote,
    Reply,
    Request,
    Sizes,
    digest_of,
    end_of,
    group_of,
    mirrored_files,
    note_of,
)

__all__ = ["Mirror"]

_WORK: Final = ".mirror"
"""Folder of pieces and of files in the making, inside of the job folder."""


class Mirror:
    """The studio's copy of a job folder, for one attempt. It takes nothing that any other attempt says.

    A file grows only by bytes that belong at its very end, a checkpoint appears whole or not at all, and every piece is
    compared with its digest. So replies may be lost, doubled, late or in another order.

    Args:
        folder: the job folder.
        attempt: number of the attempt that is listened to.
        sizes: those of the node.
    """

    def __init__(self, folder: Path, attempt: int, sizes: Sizes = SIZES) -> None:
        self.folder = folder
        self.attempt = attempt
        self.is_whole = False
        """Whether the copy equals the original, as of the newest reply."""
        self._sizes = sizes
        self._number = 0
        self._received: set[str] = set()
        self._work = folder / _WORK
        self._there: dict[str, FileNote] = {}
        self._expected: dict[str, FileNote] = {}
        self._places: dict[bytes, tuple[str, int]] = {}
        for path in mirrored_files(folder):
            self._take_up(path, note_of(folder / path, sizes.piece_bytes))

    def request(self, stop: str = "", hyperparameters: str = "") -> Request:
        """Return what is asked for next.

        Args:
            stop: why the worker shall save and end; empty for it to go on.
            hyperparameters: text of the file of those that users set.
        """
        known = {**self._there, **self._expected}
        return Request(
            attempt=self.attempt,
            ends={name: end_of(self.folder / name) for name in APPENDED},
            known={path: note.digest for path, note in known.items()},
            wanted=tuple(itertools.islice(self._lacking(), 1 + self._sizes.reply_bytes // self._sizes.piece_bytes)),
            stop=stop,
            hyperparameters=hyperparameters,
        )

    def take(self, reply: Reply) -> bool:
        """Take what belongs to the copy as it is; return whether the reply is of this attempt and newer than the last.

        Raises:
            StorageError: if the copy cannot be written; the next request asks for the same again.
        """
        if reply.attempt != self.attempt or reply.number <= self._number:
            return False
        with storage_errors(self.folder):
            self._number = reply.number
            is_taken = [self._append(self.folder / name, append) for name, append in reply.appends.items()]
            self._remove(reply.removed)
            pieces = dict(reply.pieces)
            small = {path for path, note in reply.files.items() if self._put_small(path, note, pieces)}
            self._expected.update({path: note for path, note in reply.files.items() if path not in small})
            taken = {reply.files[path].pieces[0] for path in small}
            for digest, piece in pieces.items():
                if digest not in taken:
                    self._keep(digest, piece)
            self._complete()
        self.is_whole = reply.is_whole and all(is_taken) and not self._expected
        return True

    def close(self) -> None:
        """Remove what is in the making."""
        shutil.rmtree(self._work, ignore_errors=True)

    # ---- files that grow

    def _append(self, path: Path, append: Append) -> bool:
        if end_of(path) != append.before:
            return False
        with path.open("wb" if append.is_anew else "ab") as file:
            file.write(append.data)
        return True

    # ---- files that are replaced

    def _lacking(self) -> Iterable[bytes]:
        """Return the digests of the missing pieces, those of single files before those of checkpoints."""
        order = sorted(self._expected, key=lambda path: (bool(group_of(path)), path))
        pieces = (digest for path in order for digest in self._expected[path].pieces)
        return (digest for digest in dict.fromkeys(pieces) if not self._has(digest))

    def _has(self, digest: bytes) -> bool:
        return digest in self._places or (self._work / digest.hex()).exists()

    def _keep(self, digest: bytes, piece: bytes) -> None:
        if digest_of(piece) != digest or self._has(digest):
            return
        self._work.mkdir(exist_ok=True)
        partial = self._work / f"{digest.hex()}.part"
        partial.write_bytes(piece)
        partial.rename(self._work / digest.hex())

    def _piece(self, digest: bytes) -> bytes | None:
        kept = self._work / digest.hex()
        if kept.exists():
            return kept.read_bytes()
        path, number = self._places[digest]
        with (self.folder / path).open("rb") as file:
            file.seek(number * self._sizes.piece_bytes)
            piece = file.read(self._sizes.piece_bytes)
        if digest_of(piece) != digest:
            del self._places[digest]  # the copy was changed: the piece is asked for again
            return None
        return piece

    def _complete(self) -> None:
        """Put files and whole checkpoints in place of which all pieces are there."""
        groups: dict[str, dict[str, FileNote]] = defaultdict(dict)
        for path, note in self._expected.items():
            groups[group_of(path) or path][path] = note
        for name, notes in groups.items():
            if all(self._has(digest) for note in notes.values() for digest in note.pieces):
                self._put(name, notes)
        if not self._expected and self._work.exists():
            shutil.rmtree(self._work, ignore_errors=True)

    def _put(self, name: str, notes: Mapping[str, FileNote]) -> None:
        made = self._work / "made"
        shutil.rmtree(made, ignore_errors=True)
        is_group = name not in notes
        if is_group:
            # Files of a checkpoint that did not change come along from the one that is replaced.
            stays = {path: note for path, note in self._there.items() if group_of(path) == name}
            notes = {**stays, **notes}
        for path, note in notes.items():
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                for digest in note.pieces:
                    piece = self._piece(digest)
                    if piece is None:
                        return
                    file.write(piece)
        final = self.folder / name
        final.parent.mkdir(parents=True, exist_ok=True)
        if is_group and final.exists():
            old = self._work / "old"
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
        os.replace(made / name, final)
        for path, note in notes.items():
            self._is_put(path, note)

    def _put_small(self, path: str, note: FileNote, pieces: Mapping[bytes, bytes]) -> bool:
        """Put a file in place that came whole with a reply, such as a heartbeat, which comes each second."""
        if len(note.pieces) != 1 or group_of(path) or digest_of(pieces.get(note.pieces[0], b"")) != note.pieces[0]:
            return False
        target = self.folder / path
        partial = target.with_name(f".{target.name}.part")
        try:
            partial.write_bytes(pieces[note.pieces[0]])
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(pieces[note.pieces[0]])
        os.replace(partial, target)
        self._is_put(path, note)
        return True

    def _is_put(self, path: str, note: FileNote) -> None:
        self._forget(path)
        self._expected.pop(path, None)
        self._received.add(path)
        self._take_up(path, note)

    def _take_up(self, path: str, note: FileNote) -> None:
        self._there[path] = note
        for number, digest in enumerate(note.pieces):
            self._places.setdefault(digest, (path, number))

    def _forget(self, path: str) -> None:
        note = self._there.pop(path, None)
        if note is None:
            return
        gone = [digest for digest in note.pieces if self._places.get(digest, ("", 0))[0] == path]
        for digest in gone:
            del self._places[digest]
        others = set(gone)
        for other, theirs in self._there.items():  # the piece may be in another file, too
            for number, digest in enumerate(theirs.pieces):
                if digest in others:
                    self._places.setdefault(digest, (other, number))

    def _remove(self, paths: Iterable[str]) -> None:
        """Remove checkpoints, and files that came from the node; what the studio put into the folder stays."""
        for path in paths:
            self._expected.pop(path, None)
            if not group_of(path) and path not in self._received:
                continue
            self._forget(path)
            group = self.folder / group_of(path)
            if group != self.folder and not any(group_of(other) == group_of(path) for other in self._there):
                # The whole folder at once: half a checkpoint must not look complete.
                self._work.mkdir(exist_ok=True)
                gone = self._work / "gone"
                shutil.rmtree(gone, ignore_errors=True)
                if group.exists():
                    group.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
            elif not group_of(path):
                (self.folder / path).unlink(missing_ok=True)
