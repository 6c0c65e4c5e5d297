"""Start and end of a server of models: options, log, signals."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn

from ziggurat.errors import UsageError
from ziggurat.net.http_protocol import RequestDeadlines
from ziggurat.serving.app import ServingApp
from ziggurat.serving.batcher import BatchLimits
from ziggurat.serving.bodies import BodyBudget
from ziggurat.serving.metrics import Metrics
from ziggurat.serving.served import ServedName, model_source

__all__ = ["ServeOptions", "make_app", "serve_models"]

_GRACE_S: Final = 30
"""How long answers may take that are under way when the server ends."""

_BACKLOG: Final = 2048
_BODIES: Final = 8
"""Largest bodies that may be in memory at the same time."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """How models are served.

    Args:
        host: address to listen on.
        port: of it; 0 for any free one.
        threads: of ONNX Runtime for one batch.
        decoders: threads that decode images.
        max_body_bytes: of one request.
        limits: of each queue.
        keys: public keys of which one must have signed each export; None for any export.
    """

    host: str = "127.0.0.1"
    port: int = 8600
    threads: int = 1
    decoders: int = field(default_factory=lambda: min(8, os.cpu_count() or 1))
    max_body_bytes: int = 32 << 20
    limits: BatchLimits = field(default_factory=BatchLimits)
    keys: Sequence[Any] | None = None


def make_app(
    words: Sequence[str],
    workspace: Path,
    options: ServeOptions,
    failed: Callable[[Exception], None] = lambda _error: None,
) -> ServingApp:
    """Return the application for models that are named as on the command line.

    Raises:
        UsageError: if one is not there, or two have the same name.
        UnknownNameError: if a model has no such version or alias.
    """
    metrics = Metrics()
    models: dict[str, ServedName] = {}
    for word in words:
        source = model_source(word, workspace)
        if source.name in models:
            raise UsageError(f"Two models have the name {source.name}.", advice="Serve one of them.")
        models[source.name] = ServedName(
            source,
            options.limits,
            options.threads,
            options.keys,
            lambda samples, name=source.name: metrics.batch(name, samples),
        )
    budget = BodyBudget(options.max_body_bytes, options.max_body_bytes * _BODIES)
    return ServingApp(list(models.values()), metrics, budget=budget, decoders=options.decoders, failed=failed)


def serve_models(words: Sequence[str], workspace: Path, options: ServeOptions, listening: Callable[[str], None]) -> str:
    """Serve until a signal comes, and return its name. Call it in the main thread.

    The first signal lets answers that are under way finish.

    Args:
        words: folders of exports, or ``NAME``, ``NAME:ALIAS``, ``NAME:VERSION``.
        workspace: where models are looked up.
        options: how they are served.
        listening: called with the URL once connections are taken; models may still be loading.

    Raises:
        UsageError: if the port is taken.
        ZigguratError: if a model cannot be served at the start.
    """
    errors: list[Exception] = []

    def failed(error: Exception) -> None:
        errors.append(error)
        server.should_exit = True

    app = make_app(words, workspace, options, failed)
    listener = _listener(options.host, options.port)
    config = uvicorn.Config(
        app.asgi(),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,  # nothing here asks where a request came from
        http=RequestDeadlines,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config, lambda: listening(_url(listener)))
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with _noted_signals(server) as received, listener:
        server.run(sockets=[listener])
    if errors:
        raise errors[0]
    return received[0] if received else "its own end"


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._listening()


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"The server cannot listen at {host}, port {port}: {error.strerror}.",
            advice="Choose another one with --port, or end what listens there.",
        ) from error
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _noted_signals(server: uvicorn.Server) -> Iterator[list[str]]:
    """Note signals instead of dying of them: uvicorn raises again what it received, once it has ended."""
    received: list[str] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(signal.Signals(number).name)
        server.should_exit = True

    before = [(number, signal.signal(number, note)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield received
    finally:
        for number, handler in before:
            signal.signal(number, handler)
