"""Cache folders of sources, each complete or absent, and the size limits of what is put into them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import DataError

__all__ = ["NOTE_NAME", "Meter", "SourceLimits", "cached_folder", "member_path", "plain_name"]

NOTE_NAME: Final = "ziggurat-source.json"
"""File beside the content, which says what it is."""

CONTENT_NAME: Final = "content"
_LONGEST_NAME_BYTES: Final = 255  # of one part of a path, on the file systems of Linux
_DRIVE: Final = re.compile(r"[A-Za-z]:")


def cached_folder(cache: Path, name: str, uri: str, fill: Callable[[Path], None], *, keep: bool = False) -> Path:
    """Return the folder of a cache that holds a source's content; fill it first where it is not there.

    Args:
        cache: folder of the cache, made where it is not there.
        name: of the content; the same name, the same content.
        uri: where it comes from, without secrets; written beside it.
        fill: puts the content into a folder. Where it is cut off, the folder is not taken for whole.
        keep: whether the next try goes on with what a cut-off one left; otherwise it starts over.

    Raises:
        StorageError: where the cache cannot be written.
    """
    final, partial = cache / name, cache / f"{name}.partial"
    with storage_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{name}.lock"):
            if final.is_dir():
                return final / CONTENT_NAME
            if not keep and partial.exists():
                shutil.rmtree(partial)
            partial.joinpath(CONTENT_NAME).mkdir(parents=True, exist_ok=True)
            try:
                fill(partial / CONTENT_NAME)
            except BaseException:
                if not keep:
                    shutil.rmtree(partial, ignore_errors=True)
                raise
            partial.joinpath(NOTE_NAME).write_text(json.dumps({"version": 1, "uri": uri}) + "\n", "utf-8")
            partial.rename(final)
    return final / CONTENT_NAME


def member_path(name: str, source: str) -> str:
    """Return the name of an archive's member, or of a remote file, as a path below a folder.

    Raises:
        DataError: where it would be somewhere else, or is no name at all.
    """
    plain = name.replace("\\", "/")
    while plain.startswith("./"):
        plain = plain[2:]
    path = PurePosixPath(plain)
    parts = path.parts
    if not parts or path.is_absolute() or ".." in parts or "\0" in plain or _DRIVE.match(plain):
        raise DataError(
            "Every file of a source lies in its folder.",
            received=f"{name!r} in `{source}`",
            advice="It may be made to write elsewhere: do not use it, or unpack it yourself.",
        )
    too_long = [part for part in parts if len(os.fsencode(part)) > _LONGEST_NAME_BYTES]
    if too_long:
        raise DataError(
            f"The name {too_long[0][:40]!r}… in `{source}` has {len(os.fsencode(too_long[0]))} bytes; "
            f"{_LONGEST_NAME_BYTES} is the most.",
            advice="Rename it.",
        )
    return str(path)


def plain_name(uri: str) -> str:
    """Return the last part of an address as a name for a folder in the cache; a person may recognize it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", uri.rstrip("/").rpartition("/")[2]).strip("-.")
    return plain[:40] or "source"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process has the lock; the system frees it also where a process is killed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, kw_only=True)
class SourceLimits:
    """What an archive or a remote place may bring.

    Args:
        files: how many files, folders and links at most.
        total_bytes: of all files together, unpacked.
        ratio: how many times as large as the archive its content may be.
        free_bytes: content of that size is never too much for its archive.
        depth: folders in folders of a web index.
        timeout_s: how long a server may be silent.
        tries: how often a file is asked for.
        wait_s: before the second try; twice that before the third.
    """

    files: int = 20_000_000
    total_bytes: int = 2 * 1024**4
    ratio: float = 200.0
    free_bytes: int = 64 * 1024**2
    depth: int = 16
    timeout_s: float = 60.0
    tries: int = 3
    wait_s: float = 1.0


class Meter:
    """Counts what comes, and ends it at the limit.

    Args:
        limits: what may come.
        source: named in errors.
        packed_bytes: size of the archive; None where there is none.
    """

    def __init__(self, limits: SourceLimits, source: str, packed_bytes: int | None = None) -> None:
        self._limits = limits
        self._source = source
        self._lock = threading.Lock()  # several files come at a time
        self._files = 0
        self._bytes = 0
        self._most_bytes = limits.total_bytes
        if packed_bytes is not None:
            self._most_bytes = min(self._most_bytes, int(packed_bytes * limits.ratio) + limits.free_bytes)

    def add_file(self) -> None:
        """Count a file.

        Raises:
            DataError: where there are too many.
        """
        self._files += 1
        if self._files > self._limits.files:
            raise self._too_much("files", self._limits.files)

    def add_bytes(self, count: int) -> None:
        """Count content.

        Raises:
            DataError: where there is too much.
        """
        with self._lock:
            self._bytes += count
        if self._bytes > self._most_bytes:
            raise self._too_much("bytes", self._most_bytes)

    def _too_much(self, what: str, most: int) -> DataError:
        return DataError(
            "A source stays below the limits for files, bytes, and growth when it is unpacked.",
            received=f"`{self._source}`, which has more than {most} {what}",
            advice="It may be made to fill the disk. If you trust it, unpack or copy it yourself and name the folder.",
        )
