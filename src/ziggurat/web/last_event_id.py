"""The last event id before a page is rendered, so that its event stream starts without a gap."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LastEventIdMiddleware", "last_event_id_of"]

_KEY = "newest_notice"


class LastEventIdMiddleware:
    """Notes the newest notice before anything is read for a page.

    What happens between then and the page's event stream, which a slow machine opens seconds later and a tab behind
    others only when it is looked at, is told by the stream at its begin.

    Args:
        app: inside of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            state = scope["app"].state
            scope.setdefault("state", {})[_KEY] = f"{state.streams.server}-{state.studio.notices.number}"
        await self._app(scope, receive, send)


def last_event_id_of(request: Request) -> str:
    """Return the id of the newest event from before a request, as the event stream takes it."""
    return request.scope.get("state", {}).get(_KEY, "")
