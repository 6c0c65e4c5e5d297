"""Copy of a remote source into the cache: listed first, copied file by file, and resumed after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import IO, Final, NamedTuple

from ziggurat.atomic import storage_errors
from ziggurat.datasets.sources.cache import Meter, SourceLimits, cached_folder, member_path, plain_name
from ziggurat.errors import DataError

__all__ = ["RemoteFile", "RemotePlace", "TransferError", "fetch"]

_CONNECTIONS: Final = 8
_AT_ONCE: Final = 256


class RemoteFile(NamedTuple):
    """A file of a remote place.

    Args:
        path: below the place, with ``/``.
        address: by which it is asked for.
        size_bytes: None where the place does not say.
        version: a text that changes when the file does, as far as the place says.
    """

    path: str
    address: str
    size_bytes: int | None
    version: str = ""


class TransferError(Exception):
    """A file did not come whole; another try may help."""


class RemotePlace(ABC):
    """A folder or a file that is somewhere else.

    Args:
        uri: for people, without secrets.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @abstractmethod
    def files(self) -> Iterator[RemoteFile]:
        """Yield its files, in the same order every time.

        Raises:
            DataError: where the place is not there, or may not be read.
        """

    @abstractmethod
    def copy(self, file: RemoteFile, target: Path, meter: Meter) -> None:
        """Copy a file.

        Raises:
            TransferError: where it did not come whole.
            DataError: where it cannot be read, or is more than may come.
        """

    @property
    @abstractmethod
    def is_file(self) -> bool:
        """Whether the place is one file; known when ``files`` was iterated."""


def fetch(place: RemotePlace, cache: Path, limits: SourceLimits) -> Path:
    """Return the folder in the cache that holds what a place holds now; or the file, where the place is one.

    The place is listed every time. What was copied is used again as long as the list stays the same; a copy that was
    cut off goes on after the last file that came whole.

    Raises:
        DataError: where the place is not there, cannot be read, is empty, or has more than may come.
        StorageError: where the cache cannot be written.
    """
    with storage_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
        listing = tempfile.TemporaryFile("w+", dir=cache, encoding="utf-8")  # noqa: SIM115 - closed below
    with listing:
        first, digest = _list(place, listing, limits)
        name = f"{plain_name(place.uri)}-{digest}"
        content = cached_folder(cache, name, place.uri, lambda folder: _copy(place, listing, folder, limits), keep=True)
    return content / first if place.is_file else content


def _list(place: RemotePlace, listing: IO[str], limits: SourceLimits) -> tuple[str, str]:
    """Write the list of files, and return the first one's path, and what the whole list is known by."""
    digest = hashlib.sha256(place.uri.encode())
    meter = Meter(limits, place.uri)
    first = ""
    for file in place.files():
        path = member_path(file.path, place.uri)
        first = first or path
        meter.add_file()
        meter.add_bytes(file.size_bytes or 0)
        line = json.dumps([path, *file[1:]]) + "\n"
        digest.update(line.encode())
        listing.write(line)
    if not first:
        raise DataError(
            "A source holds files.",
            received=f"`{place.uri}`, which is there and is empty",
            advice="Check the path behind the bucket or the host.",
        )
    return first, digest.hexdigest()[:16]


def _copy(place: RemotePlace, listing: IO[str], folder: Path, limits: SourceLimits) -> None:
    listing.seek(0)
    files = (RemoteFile(*json.loads(line)) for line in listing)
    meter = Meter(limits, place.uri)
    parts = folder.parent / "parts"
    parts.mkdir(exist_ok=True)
    numbers = count()

    def copy_one(file: RemoteFile) -> None:
        _copy_one(place, file, folder / file.path, parts / str(next(numbers)), meter, limits=limits)

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        try:
            while some := list(islice(files, _AT_ONCE)):
                for _ in threads.map(copy_one, some):
                    pass
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # or those that wait would be tried too
            raise
    for left in parts.iterdir():
        left.unlink()
    parts.rmdir()


def _copy_one(
    place: RemotePlace, file: RemoteFile, target: Path, part: Path, meter: Meter, *, limits: SourceLimits
) -> None:
    """Bring one file; under its own name it is whole, so that the next try knows what it need not copy."""
    if target.is_file():
        return
    _make_folder(target.parent, place.uri)
    for attempt in range(1, limits.tries + 1):
        try:
            place.copy(file, part, meter)
            _check_size(file, part)
            break
        except TransferError as error:
            if attempt == limits.tries:
                raise DataError(
                    "Every file of a source comes whole.",
                    received=f"`{file.path}` of `{place.uri}`: {error} ({attempt} tries)",
                    advice="What came is kept: do the same again, and it goes on.",
                ) from None
            time.sleep(limits.wait_s * 2 ** (attempt - 1))
    os.replace(part, target)


def _check_size(file: RemoteFile, part: Path) -> None:
    size_bytes = part.stat().st_size
    if file.size_bytes is not None and size_bytes != file.size_bytes:
        raise TransferError(f"{size_bytes} of {file.size_bytes} bytes came")


def _make_folder(folder: Path, uri: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DataError(
            "A name is that of a file or of a folder.",
            received=f"`{folder.name}` of `{uri}`, which is both",
            advice="Rename one of them.",
        ) from None
