"""Size limits of a source, and a meter that enforces them during the transfer."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ziggurat.errors import DataError

__all__ = ["Meter", "SourceLimits"]


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
