"""Serving of the application on a port that is already bound: log files, and graceful shutdown within seconds."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from ziggurat.errors import StorageError, ZigguratError
from ziggurat.net.http_protocol import RequestDeadlines

__all__ = ["StudioServer"]


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
            raise ZigguratError("The application did not start.", advice=f"The cause is at the end of {log}.") from None
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
