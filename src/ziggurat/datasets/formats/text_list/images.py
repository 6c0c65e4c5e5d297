"""Location of the images in a list: below a folder, anywhere on this machine, or on the web."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ziggurat.datasets.importer import FilePartReader
from ziggurat.datasets.sources import came_from_outside, public_uri
from ziggurat.datasets.sources.web_client import WebClient
from ziggurat.errors import DataError, DatapointError

__all__ = ["ListPictures", "UrlPartReader", "is_url"]

_LOOKED_FOR: Final = 100
_MOST_BYTES: Final = 512 * 1024**2
_TIMEOUT_S: Final = 30.0


class ListPictures:
    """Finds the images of one list.

    Args:
        path: of the list.
        source: that the addresses are relative to, or a file in that folder.
        folder: what stands before relative paths, relative to the list's own folder; empty for that folder.
        urls: whether addresses of the web are images too.
    """

    def __init__(self, path: Path, source: Path, folder: str, *, urls: bool) -> None:
        self._list = path
        self._root = source if source.is_dir() else source.parent
        self._start = path.parent / folder
        below = os.path.relpath(self._start, self._root)
        self._prefix = f"{folder}/" if os.path.isabs(folder) else "" if below == "." else f"{below}/"
        self._urls = urls
        self._is_confined = came_from_outside(path)

    def address(self, path: str) -> tuple[str, str]:
        """Return an image's address for the reader, and its key.

        Raises:
            ValueError: where the list may not name such a path; the message says why.
        """
        if is_url(path):
            return self._web_address(path)
        address = path if path.startswith("/") else self._prefix + path
        if self._is_confined and not _is_inside(self._root / address, self._root):
            raise ValueError("The path leads out of the source, which came from somewhere else.")
        return address, path

    def is_there(self, path: str) -> bool:
        """Tell whether an image is there; one of the web is believed to be."""
        return is_url(path) or self._start.joinpath(path).exists()

    def require_some(self, paths: Iterable[str]) -> None:
        """Look for the first images.

        Raises:
            DataError: where there are some, and not one is there.
        """
        first = list(islice(paths, _LOOKED_FOR))
        if first and not any(map(self.is_there, first)):
            raise DataError(
                "The images of a list are where it says.",
                received=f"`{self._list.name}`: the first {len(first)} are missing, such as `{first[0]}` below "
                f"`{self._start}`",
                advice="Set the option `folder` to what stands before the paths.",
            )

    def _web_address(self, path: str) -> tuple[str, str]:
        if not self._urls:
            raise ValueError("It is an address of the web, which the option `urls` allows.")
        if "@" in urlsplit(path).netloc:
            raise ValueError("An address in a list has no user and password.")
        return path, public_uri(path)


class UrlPartReader(FilePartReader):
    """Reads parts that are files or addresses of the web.

    Args:
        root: folder that addresses of files are relative to.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._client = WebClient(_TIMEOUT_S)

    def read(self, address: str) -> bytes:
        """Return the content."""
        if not is_url(address):
            return super().read(address)
        try:
            return self._client.content(address, _MOST_BYTES)
        except (OSError, ValueError) as error:
            raise DatapointError(public_uri(address), f"it cannot be fetched ({error}).") from None
        except DataError as error:
            raise DatapointError(public_uri(address), f"it may not be fetched. {error.rule}") from None

    def file(self, address: str) -> Path | None:  # type: ignore[override]
        """Return the file; None for an address of the web."""
        return None if is_url(address) else super().file(address)


def is_url(path: str) -> bool:
    """Tell whether a path is an address of the web."""
    return path[:8].lower().startswith(("http://", "https://"))


def _is_inside(path: Path, folder: Path) -> bool:
    root = os.path.realpath(folder)
    return f"{os.path.realpath(path)}/".startswith(f"{root}/")
