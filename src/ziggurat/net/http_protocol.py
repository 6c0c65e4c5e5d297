"""HTTP protocol of servers, with limits on heads and trailers of requests and on the time that they take to arrive."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedRequests", "RequestDeadlines"]


_MOST_HEAD_BYTES: Final = 64 << 10
"""Limit of a request line with its headers, and of the trailers of a request. Bodies are limited by their routes."""

_MOST_HEADER_LINES: Final = 200
_MOST_PIPELINED: Final = 32
"""Requests of one connection that wait for the answer to an earlier one."""

_SLICE_BYTES: Final = 16 << 10
_LINGER_S: Final = 2.0
"""How long a refused client may take to read the answer: a close with unread input would discard it."""

_TOO_LARGE_TEXT: Final = (
    f"The head of the request is too large: at most {_MOST_HEAD_BYTES >> 10} kB in {_MOST_HEADER_LINES} lines.\n"
)
_TOO_LARGE: Final = (
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    f"Content-Length: {len(_TOO_LARGE_TEXT)}\r\n\r\n{_TOO_LARGE_TEXT}"
).encode()


class BoundedRequests(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with limits on the bytes and lines of heads and trailers: its parser has none.

    Bytes are counted before they are parsed, from the last event of the parser on. Every part of a body is an event, so
    what adds up is what the parser collects: request line, headers, trailers and extensions of chunks.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._bytes_since_event = 0
        self._lines = 0
        self._is_in_data = False
        self._has_handed_over = False
        self._is_too_large = False

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, in slices that end where the limit does."""
        view, at = memoryview(data), 0
        while at < len(view) and not (self._is_too_large or self._has_handed_over or self.transport.is_closing()):
            room = _MOST_HEAD_BYTES - self._bytes_since_event
            if room <= 0:
                self._refuse()
                return
            # A part of a body need not be cut: uploads are fast, and an event follows at its end.
            size = len(view) - at if self._is_in_data else min(room, _SLICE_BYTES)
            part = bytes(view[at : at + size])
            self._bytes_since_event += len(part)
            at += len(part)
            super().data_received(part)

    def send_400_response(self, *arguments: Any, **options: Any) -> None:
        """Answer a request that cannot be parsed, or whose parsing was ended by a limit."""
        if self._is_too_large:
            self._refuse()
        else:
            super().send_400_response(*arguments, **options)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to another protocol, which gets what comes next."""
        self._has_handed_over = True
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._count_anew()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the line of a header or trailer.

        Raises:
            ValueError: if there are too many; the parser stops then.
        """
        self._lines += 1
        if self._lines > _MOST_HEADER_LINES:
            self._is_too_large = True
            raise ValueError("too many header lines")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Count anew, for the trailers, and limit how many requests wait.

        Raises:
            ValueError: if too many do; the parser stops then.
        """
        self._count_anew()
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_PIPELINED:
            self._is_too_large = True
            raise ValueError("too many requests at once")

    def on_chunk_header(self) -> None:
        """Count anew: trailers follow, or data."""
        self._count_anew()

    def on_body(self, body: bytes) -> None:
        """Count anew."""
        self._bytes_since_event = 0
        self._is_in_data = True
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Count anew: the size of a further chunk follows, or the end."""
        self._count_anew()

    def on_message_complete(self) -> None:
        """Count anew, for the next request."""
        self._count_anew()
        super().on_message_complete()

    def _count_anew(self) -> None:
        self._bytes_since_event = 0
        self._lines = 0
        self._is_in_data = False

    def _refuse(self) -> None:
        """Answer 431, ignore what still comes, and close; without an answer where one is being written already."""
        self._is_too_large = True
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        cycle = self.cycle
        is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
        is_waiting = cycle is not None and cycle.scope is not self.scope and not cycle.response_complete
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if is_answering or is_waiting or self.transport.is_closing():
            self.transport.close()
            return
        self.transport.write(_TOO_LARGE)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)


_HEADERS_S: Final = 20.0
"""How long the head of a request may take, from the connection or from its first byte on."""

_BODY_S: Final = 60.0
"""How long the next part of a body may take. Uploads are long, so only silence counts, and not the whole duration."""

_TIMED_OUT: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class RequestDeadlines(BoundedRequests):
    """A protocol with limits, which also closes a connection whose request does not arrive in time.

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

    def _refuse(self) -> None:
        self._stop()
        super()._refuse()

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
