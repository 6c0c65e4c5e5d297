"""URL prefix such as ``/ziggurat``, behind proxies that forward it and proxies that strip it."""

from __future__ import annotations

from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Scope, Send

from ziggurat.errors import UsageError

__all__ = ["PrefixMiddleware", "checked_prefix", "local_path"]


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
        raise UsageError("A prefix must be a plain path.", received=repr(prefix), advice="Write it like `/ziggurat`.")
    return "/" + prefix


def local_path(scope: Scope) -> str:
    """Return the path without the prefix."""
    path, prefix = scope["path"], scope.get("root_path", "")
    return path[len(prefix) :] if prefix and path.startswith(prefix + "/") else path
