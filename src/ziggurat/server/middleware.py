"""Middleware for every request and response: host names, sites that send requests, headers, URL prefix, counts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ziggurat.errors import UsageError
from ziggurat.workspace.accounts import is_loopback

__all__ = [
    "CONTENT_POLICY",
    "SAFE_METHODS",
    "HostMiddleware",
    "HostRule",
    "PrefixMiddleware",
    "RequestCounter",
    "RequestCounts",
    "SecurityHeaders",
    "checked_prefix",
    "host_of",
    "is_cross_site",
    "is_foreign_embedding",
    "local_path",
]


CONTENT_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)
"""Content-Security-Policy of every answer: nothing inline, nothing from elsewhere, no frame around it."""

_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FOR_DOCUMENTS: Final = frozenset(
    {"Content-Security-Policy", "X-Frame-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"}
)
_NEVER_DOCUMENTS: Final = frozenset({"text/css", "text/javascript", "image/png", "image/jpeg", "image/webp"})
"""Headers for documents mean nothing on these; a page with fifty images would carry 20 kB of them."""
_FORBIDDEN: Final = (b"\r", b"\n", b"\0")


_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class RequestCounts:
    """Numbers of requests since the start. The event loop alone changes them.

    Attributes:
        answers: (method, status) → number; methods that HTTP does not name are ``other``.
        seconds: time from requests to the first byte of their answers, all together.
    """

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.seconds = 0.0


class RequestCounter:
    """Middleware that counts.

    Args:
        app: inside of it.
        counts: get every request.
    """

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "other"  # strangers must not choose the labels
        began = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts.answers[method, message["status"]] += 1
                self._counts.seconds += time.perf_counter() - began
            await send(message)

        await self._app(scope, receive, counted)


class SecurityHeaders:
    """Adds the headers that protect, where the answer does not bring its own.

    Args:
        app: inside of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_document = headers.get("content-type", "").partition(";")[0] not in _NEVER_DOCUMENTS
                for name, value in _HEADERS.items():
                    if is_document or name not in _FOR_DOCUMENTS:
                        headers.setdefault(name, value)
                _check(headers)
            await send(message)

        await self._app(scope, receive, protected)


class HostMiddleware:
    """Refuses requests for names that are not the studio's own, as after DNS rebinding.

    Args:
        app: inside of it.
        rule: which names are.
    """

    def __init__(self, app: ASGIApp, rule: HostRule) -> None:
        self._app = app
        self._rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] in ("http", "websocket"):
            host = host_of(Headers(scope=scope))
            if host is None or not self._rule.allows(host):
                await _unknown_host(host)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _unknown_host(host: str | None) -> JSONResponse:
    error = UsageError(
        f"The studio was asked by {'no name, or not a valid one' if host is None else repr(host)}, "
        "which is none of its own names.",
        advice="Start it with `--allowed-host NAME` where the name is yours.",
    )
    return JSONResponse(error.as_dict(), 400)


def _check(headers: MutableHeaders) -> None:
    for name, value in headers.raw:
        if any(each in value for each in _FORBIDDEN):
            raise ValueError(f"The header {name.decode('latin-1')} must be one line.")


SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?\.?)(:[0-9]{1,5})?", re.IGNORECASE)
_OWN_SITE = ("same-origin", "none")
_EMBEDDED = ("iframe", "frame", "embed", "object")


class HostRule:
    """Which names the studio answers to.

    Args:
        hosts: names such as ``studio.example.org`` or ``*.example.org``; ``*`` for all.
        public_bind: whether it listens beyond this machine; it then answers to any name where ``hosts`` is empty.
    """

    def __init__(self, hosts: Iterable[str], *, public_bind: bool) -> None:
        self._hosts = tuple(host.lower().rstrip(".") for host in hosts)
        self._takes_all = "*" in self._hosts or (public_bind and not self._hosts)

    def allows(self, host: str) -> bool:
        """Return whether a name, as ``host_of`` returns it, is one of them; loopback names always are."""
        if self._takes_all or is_loopback(host):
            return True
        return any(host == known or (known[:2] == "*." and host.endswith(known[1:])) for known in self._hosts)


def host_of(headers: Headers) -> str | None:
    """Return the name of the ``Host`` header in small letters, without its port; None where it is not valid."""
    given = headers.getlist("host")
    match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    return None if match is None else match.group(1).lower().rstrip(".")


def is_cross_site(headers: Headers) -> bool:
    """Return whether a page of another site made a browser send the request.

    Every browser of today says so by ``Sec-Fetch-Site``, but over plain HTTP only to loopback; else ``Origin`` says it.
    Programs send neither.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OWN_SITE
    origin = headers.get("origin")
    return origin is not None and _authority(origin) != _without_default_port(headers.get("host", ""))


def is_foreign_embedding(headers: Headers) -> bool:
    """Return whether another site embeds or fetches something, rather than linking to it."""
    if headers.get("sec-fetch-site", "none") in _OWN_SITE:
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") in _EMBEDDED


def _authority(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return _without_default_port(parts.netloc) if parts.scheme in ("http", "https") and parts.netloc else None


def _without_default_port(authority: str) -> str:
    return re.sub(r":(80|443)$", "", authority.lower())


class PrefixMiddleware:
    """Says to the app where it stands, so that all links are right.

    Args:
        app: inside of it.
        prefix: such as ``/ziggurat``; empty for none.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if self._prefix and scope["type"] in ("http", "websocket"):
            scope = dict(scope, root_path=self._prefix)
            path = scope["path"]
            if path == self._prefix:
                scope["path"] = path + "/"
            elif not path.startswith(self._prefix + "/"):
                scope["path"] = self._prefix + path
                scope["raw_path"] = quote(self._prefix).encode() + (scope.get("raw_path") or quote(path).encode())
        await self._app(scope, receive, send)


def checked_prefix(prefix: str) -> str:
    """Return a prefix as the app takes it: with a slash before it and none behind; empty for none.

    Raises:
        UsageError: where it is no plain path.
    """
    prefix = prefix.strip("/")
    if not prefix:
        return ""
    if any(part in ("", ".", "..") for part in prefix.split("/")) or quote(prefix, safe="/") != prefix:
        raise UsageError(f"The prefix {prefix!r} is not a plain path.", advice="Write it like `/ziggurat`.")
    return "/" + prefix


def local_path(scope: Scope) -> str:
    """Return the path without the prefix."""
    path, prefix = scope["path"], scope.get("root_path", "")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path
