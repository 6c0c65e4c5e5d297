"""Remote sources in object stores and other file systems that fsspec supports, such as ``s3://``."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ziggurat.datasets.sources.cache import Meter
from ziggurat.datasets.sources.remote import RemoteFile, RemotePlace, TransferError
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_secrets, without_user
from ziggurat.errors import DataError, MissingDependencyError, ZigguratError

__all__ = ["PACKAGES", "StoredPlace"]

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
