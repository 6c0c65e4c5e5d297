"""Deadlines for requests that arrive slowly or not at all.

uvicorn closes a connection that is idle after an answer, but waits without end for the rest of a request. Half-sent
requests would then hold a file descriptor each for as long as their client likes ("Slowloris").
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["RequestDeadlines"]

_HEADERS_S: Final = 20.0
"""How long the head of a request may take, from the connection or from its first byte on."""

_BODY_S: Final = 60.0
"""How long the next part of a body may take. Uploads are long, so only silence counts, and not the whole duration."""

_TIMED_OUT: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class RequestDeadlines(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which also closes a connection whose request does not arrive in time.

    Give the class to ``uvicorn.Config(http=…)``; a subclass may set other times.
    """

    headers_s = _HEADERS_S
    body_s = _BODY_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._start(self.headers_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the deadline of a further request; that of the first one runs since the connection was made."""
        super().on_message_begin()
        if self._deadline is None:
            self._start(self.headers_s)

    def on_headers_complete(self) -> None:
        """Go over to the deadline of the body."""
        super().on_headers_complete()
        self._is_in_body = True
        self._start(self.body_s)

    def on_body(self, body: bytes) -> None:
        """Start the deadline of the next part."""
        super().on_body(body)
        self._start(self.body_s)

    def on_message_complete(self) -> None:
        """Forget the deadline: the request is here."""
        super().on_message_complete()
        self._is_in_body = False
        self._stop()

    def _start(self, after_s: float) -> None:
        self._stop()
        self._deadline = self.loop.call_later(after_s, self._expire)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._is_in_body and self.flow.read_paused:
            self._start(self.body_s)  # the application is slow to take what has arrived, not the client to send it
            return
        if not self._is_in_body:
            self.transport.write(_TIMED_OUT)
        self.transport.close()
