"""Counts of the HTTP requests that the application answered, for its metrics."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["RequestCounter", "RequestCounts"]

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
