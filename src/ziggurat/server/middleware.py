"""Middleware for every request and response: allowed host names and security headers."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ziggurat.errors import UsageError
from ziggurat.server.hosts import HostRule, host_of

__all__ = ["CONTENT_POLICY", "HostMiddleware", "SecurityHeaders"]

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
        "The studio must be asked by one of its own names.",
        received="no name, or not a valid one" if host is None else repr(host),
        advice="Start it with `--allowed-host NAME` where the name is yours.",
    )
    return JSONResponse(error.as_dict(), 400)


def _check(headers: MutableHeaders) -> None:
    for name, value in headers.raw:
        if any(each in value for each in _FORBIDDEN):
            raise ValueError(f"The header {name.decode('latin-1')} must be one line.")
