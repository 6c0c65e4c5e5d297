"""Owns remote places of the web: folders that a server lists as pages, and single files."""

from __future__ import annotations

import base64
import http.client
import posixpath
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, unquote, urldefrag, urlsplit

from ziggurat.datasets.sources.index_pages import parse_index
from ziggurat.datasets.sources.limits import Meter, SourceLimits
from ziggurat.datasets.sources.remote import RemoteFile, RemotePlace, TransferError
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_user
from ziggurat.errors import DataError

__all__ = ["WebClient", "WebPlace"]

_PAGE_BYTES: Final = 256 * 1024**2
_BLOCK_BYTES: Final = 256 * 1024
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
_PLAIN: Final = "/%:@!$&'()*+,;=~?#[]-._"


class WebPlace(RemotePlace):
    """A URL: a folder that the server lists, or a file.

    Args:
        url: starts with ``http://`` or ``https://``; user and password in it are used, and sent to that host only.
        limits: what may come.
    """

    def __init__(self, url: str, limits: SourceLimits) -> None:
        super().__init__(public_uri(url))
        self._client = WebClient(limits.timeout_s, Credentials.of(url), _host(without_user(url)))
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
                    yield RemoteFile(name, url, _length(response), response.headers.get("ETag", ""))
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
            expected = _length(response)
        if expected is not None and target.stat().st_size != expected:
            raise TransferError(f"{target.stat().st_size} of {expected} bytes came")

    def _open(self, url: str) -> Any:
        try:
            return closing(self._client.open(url))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in _PASSING:
                raise TransferError(f"the server answered {error.code} {error.reason}") from None
            raise _refused(error.code, public_uri(url)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TransferError(f"no answer ({reason or type(error).__name__})") from None


class WebClient:
    """Opens URLs of the web and nothing else: a redirect to a file of this machine is refused.

    Args:
        timeout_s: how long a server may be silent.
        credentials: sent to one host only.
        host: that gets them, with its port.
    """

    def __init__(self, timeout_s: float, credentials: Credentials | None = None, host: str = "") -> None:
        self._timeout_s = timeout_s
        self._header = _authorization(credentials) if credentials is not None and credentials.user else None
        self._host = host
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Redirects(self._request),
            urllib.request.UnknownHandler(),
        ):
            self._opener.add_handler(handler)

    def open(self, url: str) -> Any:
        """Return the response to a GET.

        Raises:
            OSError: where the server is not there, refuses, or answers with an error (``HTTPError``).
        """
        return self._opener.open(self._request(url), timeout=self._timeout_s)

    def content(self, url: str, most_bytes: int) -> bytes:
        """Return what a URL has.

        Raises:
            OSError: as ``open``, and where it is larger than asked for, or is cut off.
        """
        with closing(self.open(url)) as response:
            content = response.read(most_bytes + 1)
            expected = _length(response)
        if len(content) > most_bytes:
            raise OSError(f"more than {most_bytes} bytes")
        if expected is not None and len(content) != expected:
            raise OSError(f"{len(content)} of {expected} bytes came")
        return content

    def _request(self, url: str) -> urllib.request.Request:
        request = urllib.request.Request(quote(url, safe=_PLAIN), headers={"User-Agent": "ziggurat"})
        if self._header is not None and _host(url) == self._host:
            request.add_unredirected_header("Authorization", self._header)
        return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; credentials go on to the same host only."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            return None
        return self._request(newurl) if super().redirect_request(req, fp, code, msg, headers, newurl) else None  # type: ignore[arg-type]


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


def _length(response: Any) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() and "Content-Encoding" not in response.headers else None


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()


def _authorization(credentials: Credentials) -> str:
    pair = f"{credentials.user}:{credentials.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _refused(code: int, uri: str) -> DataError:
    rules = {401: "asks for a user and a password", 403: "forbids reading it", 404: "has nothing there"}
    return DataError(
        "A URL of a source can be read.",
        received=f"`{uri}`: the server {rules.get(code, 'refused')} ({code})",
        advice="Check the path, and whether you may read it.",
    )
