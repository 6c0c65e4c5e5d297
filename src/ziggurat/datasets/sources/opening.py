"""Opening of a source from user input: a folder, a file, an archive, or a remote address."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ziggurat.datasets.samples import split_of
from ziggurat.datasets.sources.archives import is_archive, unpack
from ziggurat.datasets.sources.cache import NOTE_NAME, SourceLimits, cached_folder, plain_name
from ziggurat.datasets.sources.remote import PACKAGES, RemotePlace, StoredPlace, TransferError, fetch
from ziggurat.datasets.sources.secrets import public_uri
from ziggurat.datasets.sources.web import WebPlace
from ziggurat.errors import DataError
from ziggurat.records.offered_folders import check_file

__all__ = ["came_from_outside", "check_offered", "inner_folder", "is_remote", "open_source"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_source(
    uri: str,
    cache: Path,
    *,
    limits: SourceLimits | None = None,
    storage: Mapping[str, Any] | None = None,
    is_unpacked: Callable[[Path], bool] | None = None,
) -> Path:
    """Return the folder or file on this machine that holds a source, for an importer.

    Folders and files of this machine stay where they are. Archives are unpacked into the cache, and remote places are
    copied into it; both are whole there or not at all, and are used again while they do not change.

    Args:
        uri: a path, or an address that starts with ``http://``, ``https://``, ``s3://``, ``gs://``, ``file://``, ….
        cache: folder for what is unpacked or copied.
        limits: what an archive or a remote place may bring.
        storage: options of the remote file system, see ``StoredPlace``.
        is_unpacked: tells whether a file is unpacked, for formats that are archives themselves; None: every archive.

    Raises:
        DataError: where the source is not there, is damaged, empty, or more than it may be.
        MissingDependencyError: where a package for its scheme is not installed.
        StorageError: where the cache cannot be written.
    """
    limits = limits or SourceLimits()
    if is_remote(uri):
        path = _fetched(_place(uri, limits, storage or {}), cache, limits)
    else:
        path = _local(uri)
        if not path.exists():
            raise DataError(f"`{uri}` does not exist.", advice="Check the path.")
    if path.is_file() and is_archive(path.name) and (is_unpacked is None or is_unpacked(path)):
        return _unpacked(path, cache, limits, public_uri(uri))
    return path


def check_offered(uri: str) -> None:
    """Find out whether a source of this machine may be read, where this process reads for others.

    Raises:
        DataError: where its path leads out of the folders that the studio offers.
    """
    try:
        check_file(_local(uri))
    except PermissionError as error:
        raise DataError(
            "A source lies below one of the folders that this studio offers.",
            received=f"`{uri}`: {error.strerror}",
            advice="Let an admin offer the folder that the link leads to, or send the files.",
        ) from None


def is_remote(uri: str) -> bool:
    """Tell whether a source is somewhere else."""
    found = _SCHEME.match(uri)
    return found is not None and found[1].lower() != "file"


def came_from_outside(path: Path) -> bool:
    """Tell whether a path lies in what was unpacked or copied: what it says of other paths is a stranger's word."""
    return any(parent.joinpath(NOTE_NAME).is_file() for parent in path.resolve().parents)


def _place(uri: str, limits: SourceLimits, storage: Mapping[str, Any]) -> RemotePlace:
    scheme = uri.partition("://")[0].lower()
    if scheme in ("http", "https"):
        return WebPlace(uri, limits)
    if scheme not in PACKAGES or "::" in uri:
        known = ", ".join(f"{name}://" for name in ("file", "http", "https", *PACKAGES) if name != "memory")
        raise DataError(
            "The address of a source starts in a way that is known.",
            received=f"`{public_uri(uri)}`",
            advice=f"Known: {known}. Or copy it yourself and name the folder.",
        )
    return StoredPlace(uri, storage)


def _fetched(place: RemotePlace, cache: Path, limits: SourceLimits) -> Path:
    try:
        return fetch(place, cache, limits)
    except TransferError as error:
        raise DataError(
            "The server of a source answers.",
            received=f"`{place.uri}`: {error}",
            advice="Check the host's name and port, and the network; or try again later.",
        ) from None


def _local(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path)) if uri.lower().startswith("file://") else Path(uri)


def _unpacked(archive: Path, cache: Path, limits: SourceLimits, uri: str) -> Path:
    found = archive.resolve().stat()
    identity = f"{archive.resolve()}\0{found.st_size}\0{found.st_mtime_ns}"
    name = f"{plain_name(archive.name)}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    return inner_folder(cached_folder(cache, name, uri, lambda folder: unpack(archive, folder, limits)))


def inner_folder(content: Path) -> Path:
    """Return the one folder that everything of an archive lies in; a folder of a split is more than a wrapping."""
    entries = [entry for entry in content.iterdir() if entry.name not in ("__MACOSX", ".DS_Store")]
    if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() and not split_of(entries[0].name):
        return entries[0]
    return content
