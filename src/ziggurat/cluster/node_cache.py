"""Copies of datasets and other folders of the workspace on a node that does not see it, known by their content."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ziggurat.atomic import storage_errors, sync_path
from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.errors import JobError, StorageError, UsageError
from ziggurat.formatting import as_bytes

__all__ = ["NodeCache", "inner_path", "try_lock"]

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


class NodeCache:
    """Cache of a node. Several processes may use it; each copies one folder at a time.

    The files of a copy are linked into the folder of every attempt that reads it. So a copy is in use as long as its
    files have other links, also after the process that made them was killed, and no reader loses a file to an eviction.

    Args:
        folder: of the cache.
        limit_bytes: of all copies together.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self._limit_bytes = limit_bytes
        self._lock = -1
        self._key = ""
        self._written: dict[str, tuple[int, Any]] = {}

    def keys(self) -> frozenset[str]:
        """Return the hashes of the copies that are complete."""
        with suppress(OSError):
            return frozenset(each.name for each in self.folder.iterdir() if not each.name.startswith("."))
        return frozenset()

    def take(self, key: str, size_bytes: int, target: Path) -> str:
        """Link a copy into a folder, or begin to make it; return ``there``, ``taken`` or ``begun``.

        ``taken``: another process of this node copies it now. Like the other calls, it may be repeated: an answer may
        have been lost.

        Raises:
            StorageError: if there is no room until a job ends; ``details`` has ``free_bytes``.
            JobError: if it is larger than the cache may be.
        """
        if self._link(key, target):
            return "there"
        if self._lock >= 0 and self._key == key:
            return "begun"
        self.give_up()
        with storage_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = try_lock(self.folder / f".{key}.lock")
        if lock is None:
            return "taken"
        self._lock, self._key, self._written = lock, key, {}
        try:
            if self._link(key, target):  # it was completed meanwhile
                self.give_up()
                return "there"
            self._remove_half_copies()
            self._make_room(size_bytes, target.name)
            with storage_errors(self.folder):
                self._part.mkdir()
        except BaseException:
            self.give_up()
            raise
        return "begun"

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write the next part of a file; one that was written before is passed over.

        Raises:
            StorageError: if the disk is full; the copy is given up.
            UsageError: if the name leads out of the folder.
        """
        target = self._part / inner_path(name)
        size, digest = self._written.get(name, (0, hashlib.blake2b(digest_size=16)))
        if offset + len(data) <= size and name in self._written:
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("r+b" if offset else "wb") as file:
                file.seek(offset)
                file.write(data)
        except OSError as error:
            self.give_up()
            free = max(0, shutil.disk_usage(self.folder).free) if error.errno in _NO_SPACE else -1
            raise StorageError(
                f"`{target}` cannot be written: {error.strerror}.", details={"free_bytes": free}
            ) from error
        digest.update(data)
        self._written[name] = (offset + len(data), digest)

    def finish(self, files: Mapping[str, tuple[int, bytes]], target: Path) -> None:
        """Compare the copy with the original, keep it, and link it into a folder.

        Args:
            files: name → size in bytes and BLAKE2b digest, of 16 bytes, of the original.
            target: the folder.

        Raises:
            JobError: if it is not equal; it is given up.
        """
        if self._lock < 0 and self._link(self._key, target):
            return
        written = {name: (size, digest.digest()) for name, (size, digest) in self._written.items()}
        if written != {name: (size, digest) for name, (size, digest) in files.items()}:
            differing = sorted(name for name in {*written, *files} if written.get(name) != files.get(name))
            self.give_up()
            raise JobError(f"The copy of `{differing[0]}` differs from the original.", advice="Resume the job.")
        with storage_errors(self.folder):
            for path in _files(self._part):
                path.chmod(0o444)  # a reader that wrote to it would change it for all
                sync_path(path)
            self._part.rename(self.folder / self._key)
        key = self._key
        self._link(key, target)
        self.give_up()

    def give_up(self) -> None:
        """Remove the copy in the making, and let others make it."""
        if self._lock < 0:
            return
        shutil.rmtree(self._part, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1

    # ---- parts

    @property
    def _part(self) -> Path:
        return self.folder / f".{self._key}.part"

    def _link(self, key: str, target: Path) -> bool:
        """Link the files of a copy into a folder; return False where there is no such copy."""
        source = self.folder / key
        try:
            with suppress(PermissionError):
                os.utime(source)  # the last use
            for path in _files(source):
                link = target / path.relative_to(source)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                os.link(path, link)
        except FileNotFoundError:  # it was never there, or is being evicted
            return False
        return source.is_dir()

    def _make_room(self, size_bytes: int, name: str) -> None:
        if size_bytes > self._limit_bytes:
            raise JobError(
                f"`{name}` has {as_bytes(size_bytes)}, and the cache of the node holds {as_bytes(self._limit_bytes)}.",
                advice="Raise the setting `cache_gib`.",
            )
        while True:
            usage = shutil.disk_usage(self.folder)
            on_disk = usage.free - disk_reserve_bytes(usage.total)
            room = min(on_disk, self._limit_bytes - _size_of(self.folder))
            if size_bytes <= room:
                return
            if not self._evict():
                raise StorageError("The cache is full of what jobs use.", details={"free_bytes": max(0, room)})

    def _evict(self) -> bool:
        """Remove the copy that was used least recently, of those that no job uses; return False where all are used."""
        copies = [self.folder / key for key in self.keys()]
        for copy in sorted(copies, key=lambda path: path.stat().st_mtime):
            gone = self.folder / f".{copy.name}.gone"
            if _is_used(copy):
                continue
            with storage_errors(copy):
                copy.rename(gone)
            if _is_used(gone):  # since a moment ago
                gone.rename(copy)
                continue
            shutil.rmtree(gone)
            return True
        return False

    def _remove_half_copies(self) -> None:
        """Remove the unfinished copies of killed processes; a live process holds the lock of its copy."""
        for path in self.folder.glob(".*.lock"):
            is_own = path.name == f".{self._key}.lock"  # nothing is copied under it yet
            lock = None if is_own else try_lock(path)
            if is_own or lock is not None:
                shutil.rmtree(path.with_suffix(".part"), ignore_errors=True)
                shutil.rmtree(path.with_suffix(".gone"), ignore_errors=True)
            if lock is not None:
                os.close(lock)


def inner_path(name: str) -> PurePosixPath:
    """Return a path below a folder.

    Raises:
        UsageError: if it leads out of it.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise UsageError("A file of a job must lie in its folder.", received=name)
    return path


def try_lock(path: Path) -> int | None:
    """Return the descriptor of a file that is locked until it is closed; None if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_used(copy: Path) -> bool:
    return any(path.stat().st_nlink > 1 for path in _files(copy))


def _size_of(folder: Path) -> int:
    total = 0
    for path in _files(folder):
        with suppress(FileNotFoundError):  # another process evicts it
            total += path.stat().st_size
    return total


def _files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place) / name for name in sorted(names))
