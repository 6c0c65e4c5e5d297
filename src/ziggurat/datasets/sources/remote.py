"""Remote sources: copied into the cache file by file, resumed after an interruption; object stores of fsspec."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import urlsplit

from ziggurat.atomic import storage_errors
from ziggurat.datasets.sources.cache import Meter, SourceLimits, cached_folder, member_path, plain_name
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_secrets, without_user
from ziggurat.errors import DataError, MissingDependencyError, ZigguratError

__all__ = ["PACKAGES", "RemoteFile", "RemotePlace", "StoredPlace", "TransferError", "fetch"]

_CONNECTIONS: Final = 8  # many servers refuse more from one client
_AT_ONCE: Final = 256  # files in the queue of the threads; a listing may have millions

PACKAGES: Final[Mapping[str, str]] = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "hf": "huggingface_hub",
    "sftp": "paramiko",
    "memory": "fsspec",
}
"""Scheme → package that fsspec needs for it. Schemes that are not here could reach this machine's own files."""

_EXTRAS: Final = {"s3": "s3", "gs": "gcs", "gcs": "gcs", "memory": "remote"}
_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_VERSIONS: Final = ("ETag", "etag", "md5Hash", "mtime", "created")
_NAMES: Final[Mapping[str, tuple[str, str]]] = {"s3": ("key", "secret"), "sftp": ("username", "password")}


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
                    f"`{file.path}` of `{place.uri}` did not come whole in {attempt} tries: {str(error).rstrip('.')}.",
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
            f"`{folder.name}` of `{uri}` is both a file and a folder.",
            advice="Rename one of them.",
        ) from None


class StoredPlace(RemotePlace):
    """A bucket, a folder or a file of an object store.

    Args:
        uri: such as ``s3://bucket/folder``.
        storage: options of fsspec's file system, such as ``endpoint_url``, ``key``, ``secret`` and ``anon`` for S3;
            what is left out comes from where the store's own tools look, such as ``AWS_ACCESS_KEY_ID``.

    Raises:
        MissingDependencyError: where the package for the scheme is not installed.
    """

    def __init__(self, uri: str, storage: Mapping[str, Any]) -> None:
        super().__init__(public_uri(uri))
        scheme = urlsplit(uri).scheme
        self._given, self._storage = uri, dict(storage)
        found = Credentials.of(uri)
        options = dict(zip(_NAMES.get(scheme, ()), (found.user, found.password))) if found.user else {}
        self._files, self._root = self._reach(without_user(uri), {**options, **storage})
        self._is_file = False

    @property
    def is_file(self) -> bool:
        """Whether the store has a file there."""
        return self._is_file

    def files(self) -> Iterator[RemoteFile]:
        """Yield the files, each folder's sorted by name, before those of the folders in it."""
        try:
            found = self._files.info(self._root)
        except Exception as error:  # each store has its own errors
            raise self._named(error) from None
        if found["type"] == "file":
            self._is_file = True
            yield _file(found, found["name"].rpartition("/")[2])
            return
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            folders = []
            for entry in self._listed(folder):
                if entry["type"] == "directory":
                    folders.append(entry["name"])
                else:
                    yield _file(entry, self._below(entry["name"]))
            waiting += reversed(folders)

    def copy(self, file: RemoteFile, target: Path, meter: Meter) -> None:
        """Copy a file."""
        meter.add_bytes(file.size_bytes or 0)
        try:
            self._files.get_file(file.address, str(target))
        except Exception as error:  # each store has its own errors
            if isinstance(error, OSError) and error.errno in _DISK_FULL:
                raise
            reason = self._hidden(f"{type(error).__name__}: {error}")
            raise TransferError(reason) from None
        if file.size_bytes is None:
            meter.add_bytes(target.stat().st_size)

    def _reach(self, uri: str, options: dict[str, Any]) -> tuple[Any, str]:
        scheme = urlsplit(uri).scheme
        try:
            from fsspec.core import url_to_fs

            return url_to_fs(uri, use_listings_cache=False, skip_instance_cache=True, **options)
        except ImportError:
            extra, purpose = _EXTRAS.get(scheme, ""), f"sources at {scheme}://"
            raise MissingDependencyError(PACKAGES[scheme], extra=extra, purpose=purpose) from None
        except Exception as error:  # a stranger's constructor
            raise self._named(error) from None

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        try:
            entries = self._files.ls(folder, detail=True)
        except Exception as error:  # each store has its own errors
            raise self._named(error) from None
        own = folder.strip("/")
        # Some stores have an empty object for a folder, which lists as a member of itself.
        kept = [entry for entry in entries if entry["name"].strip("/") != own and not _is_marker(entry)]
        return sorted(kept, key=lambda entry: entry["name"])

    def _below(self, name: str) -> str:
        start = self._root.strip("/")
        return name.strip("/").removeprefix(start).lstrip("/") if start else name.strip("/")

    def _hidden(self, text: str) -> str:
        return without_secrets(text, self._given, self._storage)

    def _named(self, error: Exception) -> ZigguratError:
        rule, advice = "The store of a source answers.", "Check the endpoint's address, and the network."
        kind = type(error).__name__
        if isinstance(error, FileNotFoundError):
            rule, advice = "A source is there.", "Check the names of the bucket and of the folder in it."
        elif isinstance(error, PermissionError) or "Credentials" in kind:
            rule = "A source may be read by who asks."
            advice = "Give the keys as the store's own tools want them, such as AWS_ACCESS_KEY_ID, or ask without any."
        return DataError(rule, received=f"`{self.uri}`: {self._hidden(str(error)) or kind}", advice=advice)


def _file(entry: Mapping[str, Any], path: str) -> RemoteFile:
    version = next(
        (str(entry[name]) for name in ("ETag", "etag", "md5Hash", "mtime", "created") if entry.get(name)), ""
    )
    size = entry.get("size")
    return RemoteFile(path, entry["name"], int(size) if size is not None else None, version)


def _is_marker(entry: Mapping[str, Any]) -> bool:
    return entry["type"] != "directory" and entry["name"].endswith("/")
