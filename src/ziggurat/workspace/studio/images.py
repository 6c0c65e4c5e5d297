"""Images for prediction: files that are named or sent, archives, lists, and images fetched from a URL.

A name in a URL is resolved once, what it stands for is checked (see ``ziggurat.net.ssrf``), and the connection goes to
the address that was checked, also after a redirect.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any, Final

import httpx

from ziggurat.dataflow.image_codec import decode_image, encode_image, read_file, shrink_image
from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.sources.archives import is_archive
from ziggurat.datasets.sources.opening import open_source
from ziggurat.errors import DataError, UsageError, ZigguratError
from ziggurat.net.http_client import DEFAULT_PORTS, AddressRefusedError, AsyncGuardedTransport, host_of, port_of
from ziggurat.net.ssrf import AllowedAddresses, status_in_words
from ziggurat.workspace.studio.paths import Paths
from ziggurat.workspace.studio.uploads import Uploads

__all__ = [
    "MOST_PICTURES",
    "PICTURE_BYTES",
    "WebPictures",
    "has_secret",
    "picture_source",
    "png_picture",
    "read_pictures",
    "smaller_picture",
]

MOST_PICTURES: Final = 1000
"""Of one request."""

PICTURE_BYTES: Final = 64 << 20
"""No image that is sent or named is larger."""

WEB_PICTURE_BYTES: Final = 20 << 20
"""No image that is fetched is larger."""


def read_pictures(paths: Paths, names: Sequence[str]) -> list[tuple[str, bytes]]:
    """Return name and content of files.

    Raises:
        UsageError: where there are too many, or one is outside of the allowed folders.
        DataError: where one is too large or cannot be read.
    """
    if len(names) > MOST_PICTURES:
        raise UsageError(f"{len(names)} images are too many: {MOST_PICTURES} are predicted for at once.")
    return [(name, _content(paths, name)) for name in names]


def _content(paths: Paths, name: str) -> bytes:
    path = paths.allowed(name)
    # Before it is read: a file may be larger than the memory.
    if path.stat().st_size > PICTURE_BYTES:
        raise DataError(f"`{name}` is too large: an image has at most {PICTURE_BYTES >> 20} MiB.")
    return read_file(path)


def smaller_picture(content: bytes, max_side_px: int) -> bytes:
    """Return an image as PNG with a longer side of at most ``max_side_px``; a small one stays as it is."""
    image = decode_image(content)
    small = shrink_image(image, max_side_px)
    return content if small is image else encode_image(small, "png")


def png_picture(content: bytes, max_side_px: int, *, key: str = "") -> bytes:
    """Return an image of any format as PNG with a longer side of at most ``max_side_px``.

    Raises:
        DataError: where it cannot be read; it names ``key``.
    """
    return smaller_picture(encode_image(decode_image(content, key=key), "png"), max_side_px)


def picture_source(source: str, paths: Paths, uploads: Uploads, now: float) -> str:
    """Return the folder or list that ``Evaluations.create_many`` takes, for what a person named or sent.

    An archive is unpacked beside the upload that it came with; one of this machine into a new upload, which goes when
    it is old, as all do. Among files that were sent, a list of the others is what is meant.

    Args:
        source: folder, archive, list or image.
        paths: that people may name.
        uploads: where files that were sent wait.
        now: seconds since 1970.

    Raises:
        UsageError: where the path may not be named.
        DataError: where an archive is damaged, or holds what it must not.
        StorageError: where the disk is full.
    """
    found = paths.allowed(source)
    upload = _upload_of(found, uploads)
    if found.is_file() and is_archive(found.name):
        upload = upload or uploads.folder / f"{int(now)}-{secrets.token_hex(8)}"
        found = open_source(str(found), upload)
    return str((_list_in(found) if upload is not None and found.is_dir() else None) or found)


def _upload_of(path: Path, uploads: Uploads) -> Path | None:
    root = Path(os.path.realpath(uploads.folder))
    return root / path.relative_to(root).parts[0] if path.is_relative_to(root) and path != root else None


def _list_in(folder: Path) -> Path | None:
    """Return the list in a folder of files that were sent; None where there is none, or there are several."""
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    lists = [path for path in entries if path.suffix.lower() in _LISTS and path.is_file()]
    if len(lists) != 1:
        return None
    named = _NAMED.match(_first_line(lists[0]))
    is_list = len(entries) == 1 or (named is not None and (folder / named[0]).exists())
    return lists[0] if is_list else None


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        return next((text for text in (line.strip() for line in islice(file, _LOOKED_AT)) if text), "")


_LIMIT_S: Final = 15.0
_CONNECT_S: Final = 5.0
_MOST_REDIRECTS: Final = 3
_MOST_AT_ONCE: Final = 4
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HEADERS: Final = {
    "User-Agent": "ziggurat",
    "Accept": "image/*, */*;q=0.5",
    "Accept-Encoding": "identity",
    "Connection": "close",
}
_SHOWN: Final = 200
_UPLOAD: Final = "Save the image and send the file."


class WebPictures:
    """Fetches images by their address.

    Args:
        hosts: names, or names with a port, that may be fetched from wherever they stand, with commas between them.
        is_on: whether anything is fetched at all.
        limit_s: how long all of it may take, redirects and resolving included.
    """

    def __init__(self, hosts: str = "", *, is_on: bool = True, limit_s: float = _LIMIT_S) -> None:
        self._allowed = AllowedAddresses.of("picture_hosts", hosts)
        self._is_on = is_on
        self._limit_s = limit_s
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)

    @property
    def is_on(self) -> bool:
        """Whether anything is fetched at all."""
        return self._is_on

    def fetch(self, url: str) -> tuple[str, bytes]:
        """Return the name of an image, which is its address without what may be secret in it, and its content.

        Raises:
            UsageError: where the address is none that may be asked, or too many are asked at once.
            DataError: if there is no answer in time, or it is too large or not an image.
        """
        if not self._is_on:
            raise UsageError("This studio fetches no images by their address.", advice=_UPLOAD)
        asked = _checked_url(url)
        with self._turn():
            name, content = asyncio.run(self._fetched_in_time(asked))
        _check_image(name, content)
        return name, content

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            raise UsageError(f"At most {_MOST_AT_ONCE} images are fetched at once.", advice="Ask again in a moment.")
        try:
            yield
        finally:
            self._free.release()

    async def _fetched_in_time(self, url: httpx.URL) -> tuple[str, bytes]:
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._fetched(url)
        except TimeoutError:
            raise DataError(
                f"`{_shown(url)}` sent no whole image in {self._limit_s:g} seconds.", advice=f"Try again, or: {_UPLOAD}"
            ) from None

    async def _fetched(self, url: httpx.URL) -> tuple[str, bytes]:
        # The bare transport: no proxy, no cookies, no redirects of its own, and no line in a log.
        async with AsyncGuardedTransport(self._allowed) as transport:
            for _ in range(_MOST_REDIRECTS + 1):
                answer = await self._answer(transport, url)
                try:
                    if answer.status_code not in _REDIRECTS:
                        return _shown(url), await _web_content(answer, url)
                    url = _next_url(answer, url)
                finally:
                    await answer.aclose()
        raise DataError(
            f"An address leads to its image by at most {_MOST_REDIRECTS} redirects.",
            received=f"another one, to `{_shown(url)}`",
            advice="Name the address of the image itself.",
        )

    async def _answer(self, transport: AsyncGuardedTransport, url: httpx.URL) -> httpx.Response:
        request = httpx.Request("GET", url, headers=_HEADERS, extensions={"timeout": {"connect": _CONNECT_S}})
        try:
            return await transport.handle_async_request(request)
        except AddressRefusedError:
            raise UsageError(
                self._allowed.rule("An image"),
                received=f"`{_shown(url)}`, which is in a network of this machine",
                advice=f"{_UPLOAD} {self._allowed.advice}",
            ) from None
        except (OSError, UnicodeError):
            raise DataError(
                f"`{host_of(url)[:_SHOWN]}` is an unknown host.",
                advice="Check how it is written, and whether the studio's machine reaches the web.",
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unanswered(url, error) from error


def has_secret(url: str) -> bool:
    """Return whether an address as it was typed may hold a name and a password; such a one is never shown again."""
    try:
        return "@" in url and bool(httpx.URL(url.strip()).userinfo)
    except (httpx.InvalidURL, ValueError):
        return "@" in url


def _checked_url(text: str) -> httpx.URL:
    """Return an address that says where an image is, in one of the ways that are understood."""
    rule, advice = "The address of an image begins with http:// or https://.", "Copy it from the browser, whole."
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        raise UsageError(rule, received="something that is no address", advice=advice) from None
    if url.userinfo:
        raise UsageError(
            "The address of an image holds no name and no password.", received="one that does", advice=_UPLOAD
        )
    if url.scheme not in DEFAULT_PORTS or not url.host:
        raise UsageError(rule, received=f"`{_shown(url)}`", advice=advice)
    if not 0 < port_of(url) < 1 << 16:
        raise UsageError(f"{port_of(url)} is not a port, a number from 1 to 65535.", advice=advice)
    return url


def _next_url(answer: httpx.Response, url: httpx.URL) -> httpx.URL:
    try:
        return _checked_url(str(url.join(answer.headers.get("location", ""))))
    except (httpx.InvalidURL, ValueError):
        raise DataError("A redirect leads to an address.", received=f"another one from `{_shown(url)}`") from None


async def _web_content(answer: httpx.Response, url: httpx.URL) -> bytes:
    if answer.status_code != HTTPStatus.OK:
        raise DataError(
            f"`{_shown(url)}` gives no image: {status_in_words(answer.status_code)}.",
            advice="Open the address in a browser; an image behind a login is saved and sent.",
        )
    content = bytearray()
    stream: Any = answer.stream
    length = answer.headers.get("content-length", "")[:20]
    _check_size(int(length) if length.isdecimal() else 0, url)
    try:
        async for part in stream:  # as it came: nothing is unpacked that could be larger than it says
            content += part
            _check_size(len(content), url)
    except httpx.HTTPError as error:
        raise _unanswered(url, error) from error
    return bytes(content)


def _check_size(size_bytes: int, url: httpx.URL) -> None:
    if size_bytes > WEB_PICTURE_BYTES:
        raise DataError(
            f"The image at `{_shown(url)}` is too large: more than {WEB_PICTURE_BYTES >> 20} MiB.", advice=_UPLOAD
        )


def _check_image(name: str, content: bytes) -> None:
    try:
        decode_image(content, key=name)
    except ZigguratError as error:
        raise DataError(
            f"`{name}` is no image that can be read: {error}",
            advice="Name the address of the image itself, not of a page that shows it.",
        ) from error


def _unanswered(url: httpx.URL, error: Exception) -> DataError:
    return DataError(
        f"`{_shown(url)}` does not answer: {type(error).__name__}: {error}.",
        advice="Check the address, and whether the studio's machine reaches it.",
    )


def _shown(url: httpx.URL) -> str:
    """Return an address for people: what stands behind `?` is often a key."""
    return str(url.copy_with(query=None, fragment=None, username="", password=""))[:_SHOWN]


_LISTS: Final = (".txt", ".lst", ".csv", ".tsv")
_ENDINGS: Final = "|".join(re.escape(suffix) for suffix in sorted(IMAGE_SUFFIXES))
_NAMED: Final = re.compile(rf".*?(?:{_ENDINGS})(?![^\s,])", re.IGNORECASE)

_LOOKED_AT: Final = 100
"""Lines of a list that may be empty before the first path."""
