"""Uploaded files before a dataset is created from them: complete, or absent."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from ziggurat.atomic import storage_errors
from ziggurat.datasets.sources.archives import is_archive
from ziggurat.datasets.sources.cache import member_path
from ziggurat.entities.trash import UPLOAD, Trash, not_in_trash
from ziggurat.errors import DataError, MissingEntryError

__all__ = ["Incoming", "Upload", "Uploads", "is_archive"]

_ID: Final = re.compile(r"[0-9]{10,12}-[0-9a-f]{16}")
_MOST_BYTES: Final = 256 << 30
_RESTORED: Final = "restored"
"""File of an upload that was deleted and restored: when, in whole seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """Files that came together.

    Args:
        id: by which more files are added.
        name: of the file or folder, or the number of several.
        source: absolute path that a spec of a dataset names: the archive where it is the only file, else the folder.
        files: number of the files.
        size_bytes: of all of them.
    """

    id: str
    name: str
    source: str
    files: int
    size_bytes: int


class Uploads:
    """Uploads of a workspace.

    Args:
        folder: where they wait.
        clock: seconds since 1970.
        trash: of the same workspace.
        most_bytes: of one upload.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], float], trash: Trash, *, most_bytes: int = _MOST_BYTES
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._trash = trash
        self._most_bytes = most_bytes
        self._known: dict[str, tuple[int, int]] = {}  # upload → files, bytes: a folder of thousands is walked once
        self._lock = threading.Lock()

    def add(self, name: str, upload_id: str = "") -> Incoming:
        """Begin a file; use the result in a ``with`` statement.

        Args:
            name: of the file, with folders where it has some (``cats/1.png``).
            upload_id: to which it is added; empty for a new one.

        Raises:
            DataError: where the name leads elsewhere.
            UsageError: where there is no such upload.
            StorageError: where the disk is full.
        """
        path = member_path(name, "the upload")
        if upload_id:
            place = self._place(upload_id)
        else:
            place = self.folder / f"{int(self._clock())}-{secrets.token_hex(8)}"
        with storage_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        return Incoming(self, place.name, place, path, self._most_bytes - self._counted(place)[1])

    def describe(self, upload_id: str) -> Upload:
        """Return what came so far.

        Raises:
            UsageError: where there is no such upload.
        """
        place = self._place(upload_id)
        source = place / "content"
        count, size_bytes = self._counted(place)
        if count == 1:
            source = next((path for path in source.rglob("*") if is_archive(path.name) and path.is_file()), source)
        return Upload(
            id=upload_id, name=_name_of(place), source=str(source.absolute()), files=count, size_bytes=size_bytes
        )

    def all(self) -> list[Upload]:
        """Return the uploads, the newest first."""
        found = []
        for each in sorted(self.folder.glob("*-*"), reverse=True):
            if _ID.fullmatch(each.name):
                with suppress(MissingEntryError):  # deleted meanwhile
                    found.append(self.describe(each.name))
        return found

    def place_file(self, upload_id: str, partial: Path, target: Path) -> None:
        """Give a file that is whole its name in the upload; one that was there by that name is replaced."""
        size_bytes = partial.stat().st_size
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            old_bytes = target.stat().st_size if target.is_file() else None
            partial.replace(target)
            if upload_id in self._known:
                count, total_bytes = self._known[upload_id]
                self._known[upload_id] = (count + (old_bytes is None), total_bytes + size_bytes - (old_bytes or 0))

    def delete(self, upload_id: str) -> None:
        """Delete an upload, which can be restored for some days.

        Raises:
            MissingEntryError: where there is no such upload.
            StorageError: where it cannot be moved.
        """
        place = self._place(upload_id)
        size_bytes = self._counted(place)[1]
        gone = self._trash.discard(
            place, upload_id, self._clock(), kind=UPLOAD, name=_name_of(place), size_bytes=size_bytes
        )
        self._known.pop(upload_id, None)
        if gone is None:  # by another request
            raise _no_upload(upload_id)

    def restore(self, text: str) -> Upload:
        """Put a deleted upload back, and return it. It waits as long as a new one.

        Args:
            text: its id or, where no other deleted upload has it, its name.

        Raises:
            MissingEntryError: where it is not deleted, or is removed from the disk.
            UsageError: where several deleted uploads have the name.
            StorageError: where it cannot be moved.
        """
        deleted = self._trash.find(UPLOAD, text)
        # Before it is moved: clearing away must not find it as old as it is.
        with storage_errors(deleted.path), suppress(FileNotFoundError):  # by another request
            (deleted.path / _RESTORED).write_text(str(int(self._clock())))
        if not self._trash.restore(deleted):
            raise not_in_trash(UPLOAD, text)
        return self.describe(deleted.id)

    def remove(self, upload_id: str) -> None:
        """Remove an upload from the disk.

        Args:
            upload_id: its id; that of a deleted one may be its name.

        Raises:
            MissingEntryError: where there is no such upload.
            UsageError: where several deleted ones have the name.
        """
        if not (_ID.fullmatch(upload_id) and (self.folder / upload_id).is_dir()):
            self._trash.remove(self._trash.find(UPLOAD, upload_id))
            return
        shutil.rmtree(self._place(upload_id), ignore_errors=True)
        self._known.pop(upload_id, None)

    def remove_older_than(self, age_s: float) -> int:
        """Delete uploads that began so long ago; return how many."""
        old = [each for each in self.folder.glob("*-*") if _ID.fullmatch(each.name) and self._age(each) > age_s]
        for each in old:
            shutil.rmtree(each, ignore_errors=True)
        return len(old)

    def remove_partial(self) -> int:
        """Delete what a kill left of files that were arriving; return how many.

        Call it before the first request: a file that is arriving now would go too.
        """
        left = [path for path in self.folder.glob("*/*.partial") if _ID.fullmatch(path.parent.name)]
        for path in left:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # it is kept if it holds other files
                path.parent.rmdir()
        return len(left)

    def _counted(self, place: Path) -> tuple[int, int]:
        """Return how many files an upload has, and their bytes."""
        with self._lock:
            if place.name not in self._known:
                sizes = [path.stat().st_size for path in (place / "content").rglob("*") if path.is_file()]
                self._known[place.name] = (len(sizes), sum(sizes))
            return self._known[place.name]

    def _age(self, place: Path) -> float:
        began = int(place.name.partition("-")[0])
        with suppress(OSError, ValueError):
            began = max(began, int((place / _RESTORED).read_text()))
        return self._clock() - began

    def _place(self, upload_id: str) -> Path:
        place = self.folder / upload_id if _ID.fullmatch(upload_id) else None
        if place is None or not place.is_dir():
            raise _no_upload(upload_id)
        return place


class Incoming:
    """A file that is coming; it is there when the ``with`` statement ends well, and not at all otherwise."""

    def __init__(self, uploads: Uploads, upload_id: str, place: Path, path: str, most_bytes: int) -> None:
        self._uploads = uploads
        self._id = upload_id
        self._target = place / "content" / path
        self._partial = place / f"{secrets.token_hex(8)}.partial"
        self._left = most_bytes
        self._file: IO[bytes] | None = None

    @property
    def upload_id(self) -> str:
        """The upload that the file belongs to."""
        return self._id

    def write(self, block: bytes) -> None:
        """Add some bytes.

        Raises:
            DataError: where the upload is too large.
            StorageError: where the disk is full.
        """
        self._left -= len(block)
        if self._left < 0:
            raise DataError("The upload is larger than this studio permits.", advice="Copy the data to the machine.")
        with storage_errors(self._partial):
            if self._file is None:
                self._file = self._partial.open("wb")
            self._file.write(block)

    def result(self) -> Upload:
        """Return what came so far, this file included once it is whole."""
        return self._uploads.describe(self._id)

    def __enter__(self) -> Self:
        self.write(b"")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        if self._file is not None:
            with storage_errors(self._partial):
                self._file.close()
        if kind is not None:
            self._partial.unlink(missing_ok=True)
            return
        with storage_errors(self._target):
            self._uploads.place_file(self._id, self._partial, self._target)


def _name_of(place: Path) -> str:
    """Return what people call an upload: its file or folder, or the number of several."""
    try:
        names = sorted(path.name for path in (place / "content").iterdir())
    except OSError:  # no file was whole yet
        names = []
    return names[0] if len(names) == 1 else f"{len(names)} files"


def _no_upload(upload_id: str) -> MissingEntryError:
    return MissingEntryError(f"There is no upload `{upload_id}`.", advice="Send the files again.")
