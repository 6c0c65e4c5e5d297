"""Remote sources on the web: folders with a server-generated listing, single files, and their HTTP client."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ziggurat.datasets.sources.cache import Meter, SourceLimits
from ziggurat.datasets.sources.remote import RemoteFile, RemotePlace, TransferError
from ziggurat.datasets.sources.secrets import Credentials, public_uri, without_user
from ziggurat.errors import DataError
from ziggurat.net.http_client import AddressRefusedError, ConnectionBrokenError, HTTPClient, HTTPResponse, StatusError
from ziggurat.net.ssrf import AllowedAddresses, status_in_words

__all__ = ["WebClient", "WebPlace", "address_limits", "limit_addresses", "parse_index"]

_allowed: AllowedAddresses | None = None

_PAGE_BYTES: Final = 256 * 1024**2  # of a listing, which is held in memory
_PAGES: Final = ("text/html", "application/xhtml+xml")
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)  # answers of a server that is busy: worth another attempt


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
        raise DataError(f"The page that lists the folder `{uri}` cannot be read: {str(error).rstrip('.')}.") from None
    try:
        return content.decode(response.charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _refused(code: int, uri: str) -> DataError:
    return DataError(
        f"`{uri}` cannot be read: the server answered {status_in_words(code)}.",
        advice="Check the path, and whether you may read it.",
    )


class IndexEntry(NamedTuple):
    """One entry of a page.

    Args:
        name: of a file or folder, without what URLs escape.
        url: of it.
        is_folder: whether it is a folder.
        note: what the page says behind it: date and size, as the server writes them.
    """

    name: str
    url: str
    is_folder: bool
    note: str = ""


def parse_index(page: str, url: str) -> list[IndexEntry]:
    """Return the entries of a page, sorted by name; those that sort the list or lead up or elsewhere are left out.

    Args:
        page: HTML.
        url: of the page, after all redirects.
    """
    parser = _Links()
    parser.feed(page)
    parser.close()
    found = {}
    for reference, note in parser.links:
        entry = _entry(reference, note, url)
        if entry is not None:
            found.setdefault((entry.name, entry.is_folder), entry)
    return [found[name] for name in sorted(found)]


def _entry(reference: str, note: str, url: str) -> IndexEntry | None:
    try:
        target = urldefrag(urljoin(url, reference)).url
        parts, base = urlsplit(target), urlsplit(url)
    except ValueError:
        return None
    folder = base.path.rpartition("/")[0] + "/"
    inside = parts.path.startswith(folder) or unquote(parts.path).startswith(unquote(folder))
    if (parts.scheme, parts.netloc) != (base.scheme, base.netloc) or parts.query or not inside:
        return None
    rest = unquote(parts.path)[len(unquote(folder)) :]
    name = rest.rstrip("/")
    if name in ("", ".", "..") or "/" in name or "\0" in name or "\\" in name:
        return None
    return IndexEntry(name, target, rest.endswith("/"), " ".join(note.split()))


class _Links(HTMLParser):
    """Collects links, each with the text that follows it up to the next one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[tuple[str, str]] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            reference = dict(attrs).get("href")
            self._is_inside = True
            if reference:
                self.links.append((reference.strip(), ""))

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "a"

    def handle_data(self, data: str) -> None:
        if self.links and not self._is_inside:
            reference, note = self.links[-1]
            self.links[-1] = (reference, (note + data)[:500])


def limit_addresses(allowed: AllowedAddresses | None) -> None:
    """Say for all of this process what may be fetched; None for everything, as it is at the beginning."""
    global _allowed
    _allowed = allowed


def address_limits() -> AllowedAddresses | None:
    """Return what may be fetched in this process, for those that it starts; None for everything."""
    return _allowed


class WebClient:
    """Opens URLs within the limits of this process.

    Args:
        timeout_s: how long a server may be silent.
        credentials: sent to one host only.
        host: that gets them, with its port.
    """

    def __init__(self, timeout_s: float, credentials: Credentials | None = None, host: str = "") -> None:
        self._client = HTTPClient(timeout_s)
        self._authorization = _authorization(credentials) if credentials is not None and credentials.user else ""
        self._host = host

    def open(self, url: str) -> HTTPResponse:
        """Return the response to a GET.

        Raises:
            OSError: where the server is not there, refuses, or answers with an error (``StatusError``).
            DataError: where the address is none that may be fetched here.
        """
        authorization = self._authorization if host_of(url) == self._host else ""
        try:
            return self._client.get(url, allowed=_allowed, authorization=authorization)
        except AddressRefusedError as error:
            limits = _allowed or AllowedAddresses("source_hosts")
            raise DataError(
                limits.rule("What a dataset is made of"),
                received=f"`{error.host}:{error.port}`, which is in a network of the studio's machine",
                advice=f"Send the files, or name a folder. {limits.advice}",
            ) from None

    def content(self, url: str, most_bytes: int) -> bytes:
        """Return what a URL has.

        Raises:
            OSError: as ``open``, and where it is larger than asked for, or is cut off.
            DataError: as ``open``.
        """
        with self.open(url) as response:
            return response.content(most_bytes)


def host_of(url: str) -> str:
    """Return the host of a URL, with its port where it says one."""
    return urlsplit(url).netloc.lower()


def _authorization(credentials: Credentials) -> str:
    pair = f"{credentials.user}:{credentials.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"
