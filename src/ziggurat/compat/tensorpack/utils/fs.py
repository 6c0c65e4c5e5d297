"""Folders and files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ziggurat.errors import DataError
from ziggurat.tf import logger

__all__ = ["download", "get_dataset_path", "mkdir_p", "normpath", "recursive_walk"]

_DATA: Final = "TENSORPACK_DATASET"


def mkdir_p(dirname: str | os.PathLike[str]) -> None:
    """Make a folder and those above it; do nothing where it is there, or the name is empty."""
    if os.fspath(dirname):
        Path(dirname).mkdir(parents=True, exist_ok=True)


def download(
    url: str,
    dir: str | os.PathLike[str],  # noqa: A002 - Tensorpack's name
    filename: str | None = None,
    expect_size: int | None = None,
) -> str:
    """Return a file that was downloaded before: nothing is downloaded here.

    Args:
        url: its address, shown where the file is missing.
        dir: the folder it should be in.
        filename: its name; the last part of the address where it is None.
        expect_size: its size, in bytes.

    Raises:
        DataError: where it is missing or of another size.
    """
    path = Path(dir) / (filename or url.rsplit("/", 1)[-1])
    size = path.stat().st_size if path.is_file() else None
    if size is None or expect_size not in (None, size):
        raise DataError(
            f"{path} is {'missing' if size is None else f'{size} bytes long, not {expect_size}'}, and a "
            "program that runs here downloads no files.",
            advice=f"Fetch {url} yourself and put it there.",
        )
    return str(path)


def recursive_walk(rootdir: str | os.PathLike[str]) -> Iterator[str]:
    """Yield every file below a folder."""
    for folder, _, names in os.walk(rootdir):
        for name in names:
            yield os.path.join(folder, name)


def get_dataset_path(*args: str) -> str:
    """Return a path in the folder of datasets: ``$TENSORPACK_DATASET``, or ``~/tensorpack_data``.

    Args:
        args: parts of the path, below the folder.
    """
    folder = os.environ.get(_DATA)
    if folder is None:
        folder = str(Path.home() / "tensorpack_data")
        logger.warning("$%s is not set; datasets are in %s.", _DATA, folder)
    mkdir_p(folder)
    return os.path.join(folder, *args)


def normpath(path: str) -> str:
    """Return a path in its shortest form; an address with ``://`` as it is."""
    return path if "://" in path else os.path.normpath(path)
