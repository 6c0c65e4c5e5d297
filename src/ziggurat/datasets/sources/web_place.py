"""Remote sources on the web: folders with a server-generated listing, and single files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urlsplit

from ziggurat.datasets.sources.index_pages import parse_index
from ziggurat.datasets.sources.limits import Meter, SourceLimits
from ziggurat.datasets.sources.remote import RemoteFile, RemotePlace, TransferError
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_user
from ziggurat.datasets.sources.web_client import WebClient, host_of
from ziggurat.errors import DataError
from ziggurat.net.http_client import ConnectionBrokenError, HTTPResponse, StatusError
from ziggurat.net.ssrf import status_in_words

__all__ = ["WebPlace"]

_PAGE_BYTES: Final = 256 * 1024**2
_PAGES: Final = ("text/html", "application/xhtml+xml")
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
                if not above and response.media_type not in _PAGES:
                    self._is_file = True
                    name = unquote(posixpath.basename(urlsplit(url).path)) or "download"
                    yield RemoteFile(name, url, response.length, response.headers.get("ETag", ""))
                    return
                page, base = _text(response, self.uri), response.url
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
            try:
                with target.open("wb") as out:
                    for block in response.parts():
                        meter.add_bytes(len(block))
                        out.write(block)
            except ConnectionBrokenError as error:
                if response.length is None:
                    raise TransferError(str(error)) from None
            expected = response.length
        if expected is not None and target.stat().st_size != expected:
            raise TransferError(f"{target.stat().st_size} of {expected} bytes came")

    def _open(self, url: str) -> HTTPResponse:
        try:
            return self._client.open(url)
        except StatusError as error:
            if error.status in _PASSING:
                raise TransferError(f"the server answered {status_in_words(error.status)}") from None
            raise _refused(error.status, public_uri(url)) from None
        except (OSError, ValueError) as error:
            raise TransferError(f"no answer ({str(error) or type(error).__name__})") from None


def _text(response: HTTPResponse, uri: str) -> str:
    try:
        content = response.content(_PAGE_BYTES)
    except ConnectionBrokenError as error:
        raise TransferError(str(error)) from None
    except OSError as error:
        raise DataError("A page that lists a folder is short.", received=f"{error} at `{uri}`") from None
    try:
        return content.decode(response.charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _refused(code: int, uri: str) -> DataError:
    return DataError(
        "A URL of a source can be read.",
        received=f"`{uri}`: the server answered {status_in_words(code)}",
        advice="Check the path, and whether you may read it.",
    )
