"""Cache of small images on disk: bounded, written atomically, with the least recently used removed first."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ziggurat.atomic import replaced_file
from ziggurat.errors import StorageError

__all__ = ["ThumbnailCache"]

_MOST_BYTES: Final = 256 << 20
_LEFT_SHARE: Final = 0.8
"""Share of the limit that is kept when the cache is full, so that the next images need no clean-up."""

_USED_EVERY_S: Final = 3600.0
"""Minimum time between updates of a file's time of use."""

_CHECKSUM_BYTES: Final = 4


class ThumbnailCache:
    """Cache of small images. Any thread may call any method; several processes may share the folder.

    Files that are damaged or cannot be written are not errors: their images are made again.

    Args:
        folder: of the cache; created with the first image.
        most_bytes: total size of all images.
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, most_bytes: int = _MOST_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._size_bytes: int | None = None

    def get(self, *key: object) -> bytes | None:
        """Return an image; None if it is missing or damaged."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            now = self._clock()
            if now - path.stat().st_mtime > _USED_EVERY_S:
                os.utime(path, (now, now))
        except OSError:
            return None
        image = content[_CHECKSUM_BYTES:]
        return image if content[:_CHECKSUM_BYTES] == _checksum(image) else None

    def put(self, image: bytes, *key: object) -> None:
        """Store an image, unless the disk is full."""
        path, content = self._path(key), _checksum(image) + image
        with suppress(StorageError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(path, "A thumbnail", durable=False) as temporary:
                temporary.write_bytes(content)
            self._count(len(content))

    def _path(self, key: tuple[object, ...]) -> Path:
        name = hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:40]
        return self._folder / name[:2] / name[2:]

    def _count(self, added_bytes: int) -> None:
        with self._lock:
            if self._size_bytes is None:
                self._size_bytes = sum(size_bytes for _, size_bytes, _ in self._files())
            else:
                self._size_bytes += added_bytes
            if self._size_bytes > self._most_bytes:
                self._size_bytes = self._remove_oldest()

    def _remove_oldest(self) -> int:
        """Remove files until the rest is small enough; return the size of the rest."""
        files = sorted(self._files())
        size_bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if size_bytes <= self._most_bytes * _LEFT_SHARE:
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
                size_bytes -= size
        return size_bytes

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return time of use, size and path of each file; files that are deleted meanwhile are left out."""
        found = []
        for path in self._folder.glob("??/*"):
            with suppress(OSError):
                noted = path.stat()
                found.append((noted.st_mtime, noted.st_size, path))
        return found


def _checksum(image: bytes) -> bytes:
    return zlib.crc32(image).to_bytes(_CHECKSUM_BYTES, "big")
