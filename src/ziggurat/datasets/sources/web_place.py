"""Remote sources on the web: folders with a server-generated listing, and single files."""

from __future__ import annotations

import http.client
import posixpath
import urllib.error
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urlsplit

from ziggurat.datasets.sources.index_pages import parse_index
from ziggurat.datasets.sources.limits import Meter, SourceLimits
from ziggurat.datasets.sources.remote import RemoteFile, RemotePlace, TransferError
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_user
from ziggurat.datasets.sources.web_client import WebClient, host_of, length_of
from ziggurat.errors import DataError
from ziggurat.net.ssrf import status_in_words

__all__ = ["WebPlace"]

_PAGE_BYTES: Final = 256 * 1024**2
_BLOCK_BYTES: Final = 256 * 1024
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)


class WebPlace(RemotePlace):
    """A URL: a folder that the server lists, or a file.

    Args:
        url: starts with ``http://`` or ``https://``; user and password in it are used, and sent to that host only.
        limits: what may come.
    """

    def __init__(self, url: str, limits: SourceLimits) -> None:
        super().__init__(public_uri(url))
        self._client = WebClient(limits.timeout_s, Credentials.of(url), host_of(without_user(url)))
        self._url = urldefrag(without_user(url)).url
        self._limits = limits
        self._is_file = False

    @property
    def is_file(self) -> bool:
        """Whether the server gave a file, not a page."""
        return self._is_file

    def files(self) -> Iterator[RemoteFile]:
        """Yield the files that the pages list, each folder after the files of the one above."""
        waiting = [("", self._url, 0)]
        seen = {self._url}
        while waiting:
            above, url, depth = waiting.pop()
            with self._open(url) as response:
                if not above and not _is_page(response):
                    self._is_file = True
                    name = unquote(posixpath.basename(urlsplit(url).path)) or "download"
                    yield RemoteFile(name, url, length_of(response), response.headers.get("ETag", ""))
                    return
                page, base = _text(response, self.uri), response.geturl()
            folders = []
            for entry in parse_index(page, base):
                path = f"{above}/{entry.name}" if above else entry.name
                if not entry.is_folder:
                    yield RemoteFile(path, entry.url, None, entry.note)
                elif entry.url not in seen and depth < self._limits.depth:
                    seen.add(entry.url)
                    folders.append((path, entry.url, depth + 1))
            waiting += reversed(folders)

    def copy(self, file: RemoteFile, target: Path, meter: Meter) -> None:
        """Copy a file; the server's word on its length is held to."""
        with self._open(file.address) as response:
            with target.open("wb") as out:
                while block := _read(response, _BLOCK_BYTES):
                    meter.add_bytes(len(block))
                    out.write(block)
            expected = length_of(response)
        if expected is not None and target.stat().st_size != expected:
            raise TransferError(f"{target.stat().st_size} of {expected} bytes came")

    def _open(self, url: str) -> Any:
        try:
            return closing(self._client.open(url))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in _PASSING:
                raise TransferError(f"the server answered {status_in_words(error.code)}") from None
            raise _refused(error.code, public_uri(url)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TransferError(f"no answer ({reason or type(error).__name__})") from None


def _read(response: Any, most: int) -> bytes:
    try:
        return response.read(most)
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(f"the connection broke ({type(error).__name__})") from None


def _text(response: Any, uri: str) -> str:
    content = _read(response, _PAGE_BYTES + 1)
    if len(content) > _PAGE_BYTES:
        raise DataError("A page that lists a folder is short.", received=f"more than {_PAGE_BYTES} bytes at `{uri}`")
    try:
        return content.decode(response.headers.get_content_charset() or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _is_page(response: Any) -> bool:
    return response.headers.get_content_type() in ("text/html", "application/xhtml+xml")


def _refused(code: int, uri: str) -> DataError:
    return DataError(
        "A URL of a source can be read.",
        received=f"`{uri}`: the server answered {status_in_words(code)}",
        advice="Check the path, and whether you may read it.",
    )
