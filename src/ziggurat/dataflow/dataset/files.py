"""Location of dataset files, errors for missing files, and downloads on request.

A download uses HTTPS only. Its SHA-256 is compared with the known one before the file gets its final name.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.errors import DataError, UnknownNameError, UsageError

__all__ = ["Download", "fetch", "find_files", "require_split", "set_data_folder", "set_folder"]

_TIMEOUT_S = 60
_BLOCK_BYTES = 1 << 20
_default_root: Path | None = None


@dataclass(frozen=True)
class Download:
    """A file that can be fetched.

    Args:
        name: its name in the folder.
        url: where it is, by HTTPS.
        sha256: checksum of the file as it comes, in hexadecimal.
    """

    name: str
    url: str
    sha256: str


def set_data_folder(root: str | os.PathLike[str] | None) -> None:
    """Say where datasets are looked for when no folder is given: in ``root/mnist``, ``root/cifar10`` and so on.

    None undoes it. Nothing is written there unless ``download=True`` is given.
    """
    global _default_root
    _default_root = None if root is None else Path(root)


def set_folder(reader: str, given: str | os.PathLike[str] | None, *names: str) -> Path:
    """Return the folder of a dataset: the given one, or the first of ``names`` below the default root.

    Raises:
        UsageError: where neither is there.
    """
    if given is not None:
        return Path(given)
    if _default_root is None:
        raise UsageError(
            f"`{reader}` was given no folder to read its files from.",
            advice=f'Write `{reader}(…, dir="…")`, or call `set_data_folder("…")` once; '
            f"the files are then expected in `{names[0]}` below it.",
        )
    folders = [_default_root / name for name in names]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def require_split(reader: str, name: str, known: Sequence[str]) -> None:
    """Raise ``UnknownNameError`` unless ``name`` is a split of the dataset."""
    if name not in known:
        raise UnknownNameError(f"split of `{reader}`", name, known)


def find_files(
    reader: str,
    folder: Path,
    wanted: Sequence[Sequence[str]],
    *,
    downloads: Sequence[Download] = (),
    download: bool = False,
    source: str = "",
) -> list[Path]:
    """Return the paths of files.

    Args:
        reader: class name of the reader, for errors.
        folder: where to look.
        wanted: for each file the names that it may have, the usual one first.
        downloads: where the usual ones can be fetched.
        download: whether missing ones are fetched into ``folder``, which is made if need be.
        source: where people find files that cannot be fetched.

    Raises:
        DataError: where files are missing, or fetched ones are not what they should be.
    """
    found = [next((folder / name for name in names if (folder / name).is_file()), None) for names in wanted]
    missing = [names[0] for names, path in zip(wanted, found, strict=True) if path is None]
    offered = [item for item in downloads if item.name in missing]
    if missing and download and offered:
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for item in offered:
            fetch(item, folder)
        return find_files(reader, folder, wanted, source=source)
    if missing:
        advice = f"Put the missing files there{f' (from {source})' if source else ''}"
        advice += ", or fetch them with `download=True`." if downloads else "."
        raise DataError(
            f"The folder `{folder}` has no {', '.join(f'`{name}`' for name in missing)}, which `{reader}` reads.",
            advice=advice,
            details={"folder": str(folder), "missing": missing},
        )
    return [path for path in found if path is not None]


def fetch(item: Download, folder: Path, *, opener: Callable[..., Any] = urllib.request.urlopen) -> Path:
    """Fetch a file into ``folder`` and return its path.

    Args:
        item: what to fetch.
        folder: an existing folder.
        opener: opens a URL; gets the URL and ``timeout=`` in seconds.

    Raises:
        DataError: where it cannot be fetched, or its checksum is wrong; nothing is left behind then.
        StorageError: where it cannot be written.
    """
    if not item.url.startswith("https://"):
        raise UsageError("Data is fetched by HTTPS only.", received=item.url)
    target = AtomicFile(folder / item.name)
    try:
        digest = _copy(item, target.path, opener)
        if digest != item.sha256:
            raise DataError(
                f"`{item.name}` from {item.url} has the SHA-256 {digest}, not {item.sha256}.",
                advice="The file was changed or cut off on the way: try again later.",
            )
        target.publish()
    except BaseException:
        target.discard()
        raise
    return target.final


def _copy(item: Download, path: Path, opener: Callable[..., Any]) -> str:
    """Write what the URL gives into ``path`` and return its SHA-256."""
    digest = hashlib.sha256()
    try:
        response = opener(item.url, timeout=_TIMEOUT_S)
    except OSError as error:
        raise _not_fetched(item, error) from error
    with response, storage_errors(path), open(path, "xb") as file:
        while True:
            try:
                block = response.read(_BLOCK_BYTES)
            except OSError as error:
                raise _not_fetched(item, error) from error
            if not block:
                return digest.hexdigest()
            digest.update(block)
            file.write(block)


def _not_fetched(item: Download, error: OSError) -> DataError:
    return DataError(
        f"`{item.name}` could not be fetched from {item.url}: {str(error) or type(error).__name__}.",
        advice="Try again later, or bring the file there by other means and pass its folder.",
    )
