"""Serving of the application on a port that is already bound: log files, and graceful shutdown within seconds."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ziggurat.errors import StorageError, ZigguratError

__all__ = ["BoundedRequests", "RequestDeadlines", "StudioServer"]


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


_GRACE_S: Final = 5
"""How long answers may take that are under way when the server ends; event streams never end by themselves."""

_TRUSTED_PROXIES: Final = ("127.0.0.1", "::1")
"""Whose word is taken on where a request came from: proxies on this machine."""

_LOG_BYTES: Final = 10 << 20
_LOG_FILES: Final = 5
_SERVER_LOG: Final = "server.log"
_LOGS: Final = {"access.log": ("uvicorn.access",), _SERVER_LOG: ("uvicorn.error", "ziggurat")}
"""File → loggers. What Ziggurat itself says, such as the trace of an unforeseen error, also goes where it goes else."""


def serve(
    application: FastAPI,
    listener: socket.socket,
    *,
    logs: Path,
    ready: Callable[[], None],
    grace_s: int = _GRACE_S,
) -> str:
    """Serve until a signal comes, and return its name. Call it in the main thread.

    The first signal lets answers that are under way finish, a further Ctrl-C does not.

    Args:
        application: of ``create_app``.
        listener: what ``ziggurat.workspace.server_process.take_port`` gave; it is closed at the end.
        logs: folder of ``access.log`` and ``server.log``, which are replaced before they grow large.
        ready: called once requests are answered.
        grace_s: how long answers may take at the end.

    Raises:
        StorageError: where the logs cannot be written.
        ZigguratError: where the application does not start.
    """
    config = uvicorn.Config(
        application,
        log_config=None,
        forwarded_allow_ips=list(_TRUSTED_PROXIES),
        lifespan="on",  # by default, an application that fails at its start is served all the same
        ws="none",
        http=RequestDeadlines,
        server_header=False,
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config, ready)
    with _log_files(logs), _noted_signals(server) as received, listener:
        try:
            server.run(sockets=[listener])
        except SystemExit:  # how uvicorn says that the application did not start
            log = logs / _SERVER_LOG
            raise ZigguratError("The application must start.", advice=f"The cause is at the end of {log}.") from None
    return received[0] if received else "its own end"


class StudioServer(uvicorn.Server):
    """Ends the event streams first when it ends: uvicorn by itself waits for them until its grace is over."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then what uvicorn ends."""
        app = self.config.app
        if isinstance(app, FastAPI) and hasattr(app.state, "streams"):
            app.state.streams.close()
        await super().shutdown(sockets)


class _Server(StudioServer):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


@contextmanager
def _noted_signals(server: uvicorn.Server) -> Iterator[list[str]]:
    """Note signals instead of dying of them: uvicorn raises again what it received, once it has ended."""
    received: list[str] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(signal.Signals(number).name)
        server.should_exit = True  # for those that uvicorn does not look at: a closed terminal

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under `nohup`, a closed terminal means nothing
        numbers.append(signal.SIGHUP)
    before = [(number, signal.signal(number, note)) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def _log_files(folder: Path) -> Iterator[None]:
    made: list[tuple[logging.Logger, logging.Handler]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, names in _LOGS.items():
            handler = RotatingFileHandler(
                folder / file, maxBytes=_LOG_BYTES, backupCount=_LOG_FILES - 1, encoding="utf-8"
            )
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
            for name in names:
                logger = logging.getLogger(name)
                logger.addHandler(handler)
                made.append((logger, handler))
                if name.startswith("uvicorn."):
                    logger.setLevel(logging.INFO)
                    logger.propagate = False
    except OSError as error:
        _take_away(made)
        raise StorageError(
            f"The logs of the server must be written to {folder}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights.",
        ) from error
    try:
        yield
    finally:
        _take_away(made)


def _take_away(handlers: list[tuple[logging.Logger, logging.Handler]]) -> None:
    for logger, handler in handlers:
        logger.removeHandler(handler)
        if logger.name.startswith("uvicorn."):
            logger.propagate = True
        handler.close()
