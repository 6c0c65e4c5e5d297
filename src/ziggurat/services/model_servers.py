"""Servers of exported models: ``ziggurat serve`` as a child process, on a free loopback port, with its log."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from ziggurat.entities.processes import ProcessGroup, last_line
from ziggurat.errors import JobError

__all__ = ["SERVE_COMMAND", "ModelServers", "ServerState"]

SERVE_COMMAND: Final = (sys.executable, "-m", "ziggurat", "serve")
"""Starts a server; options and the folder of the export are added."""

_HOST: Final = "127.0.0.1"
_END_WITHIN_S: Final = 5.0
_ANSWER_WITHIN_S: Final = 2.0
_LOG_BYTES: Final = 8000
_URL: Final = re.compile(r"http://127\.0\.0\.1:([0-9]+)/")
_REQUESTS: Final = re.compile(r'^ziggurat_requests_total\{.*route="[^"]*(?:predict|infer)".*\} ([0-9]+)$', re.MULTILINE)

Key = tuple[str, str]
"""Id of the job, and name of the export."""


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """How a server is.

    Args:
        state: ``loading``, ``ready`` or ``failed``.
        url: where it answers; empty while it is unknown.
        started: in seconds since 1970.
        reason: why it failed; empty if it did not.
        requests: predictions that it was asked for; None while it does not answer.
        self_test: samples that the self-test compared at its start, all of them equal; 0 while it is loading.
        log: end of its log.
    """

    state: Literal["loading", "ready", "failed"]
    url: str
    started: float
    reason: str = ""
    requests: int | None = None
    self_test: int = 0
    log: str = ""


class ModelServers:
    """The servers of a studio; they end with it. Any thread may call any method; use it as a context manager.

    Args:
        environment: of the processes.
        logs: folder of their logs.
        command: what starts one.
        most: of them at a time.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        logs: Path,
        *,
        command: Sequence[str] = SERVE_COMMAND,
        most: int = 4,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._environment = dict(environment)
        self._logs = logs
        self._command = tuple(command)
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._servers: dict[Key, _Server] = {}
        self._is_closed = False

    def start(self, key: Key, folder: Path) -> ServerState:
        """Start the server of an export; one that runs is left alone, one that failed is started again.

        Raises:
            JobError: if there are too many, or the studio ends.
            StorageError: if no process can be started.
        """
        with self._lock:
            known = self._servers.get(key)
            if known is not None and not known.has_exited():
                return known.state()
            if self._is_closed:
                raise JobError("The studio is about to end.", advice="Ask again when it runs.")
            running = [each for each in self._servers.values() if not each.has_exited()]
            if len(running) >= self._most:
                raise JobError(
                    f"{len(running)} models are served already, the most at the same time.",
                    advice="Stop one of them first.",
                )
            if known is not None:
                known.close()
            log = self._logs / f"{key[0]}-{key[1]}.log"
            words = [*self._command, "--port", "0", "--until-input-ends", "--", str(folder)]
            server = self._servers[key] = _Server(words, self._environment, log, self._clock())
        return server.state()

    def stop(self, key: Key) -> None:
        """End the server of an export; where there is none, nothing happens."""
        with self._lock:
            server = self._servers.pop(key, None)
        if server is not None:
            server.close()

    def release(self, job_id: str) -> None:
        """End the servers of a job, as before its folder is deleted."""
        for key in [each for each in self._servers if each[0] == job_id]:
            self.stop(key)

    def state(self, key: Key) -> ServerState | None:
        """Return how the server of an export is; None if it was not started, or was stopped."""
        with self._lock:
            server = self._servers.get(key)
        return None if server is None else server.state()

    def close(self) -> None:
        """End all of them; closing twice does nothing."""
        with self._lock:
            self._is_closed = True
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.ask_to_end()
        for server in servers:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


class _Server:
    """One server."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, started: float) -> None:
        self._log = log
        self._started = started
        self._port: int | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        log.unlink(missing_ok=True)  # that of the last time says nothing of this one
        self._group = ProcessGroup(command, environment, log)

    def has_exited(self) -> bool:
        return self._is_closed or self._group.has_exited()

    def state(self) -> ServerState:
        """Return how it is now; it is asked over HTTP."""
        with self._lock:
            port = self._read_port()
            about = None if port is None or self.has_exited() else _asked(port)
        url = "" if port is None else f"http://{_HOST}:{port}"
        known: dict[str, Any] = {"url": url, "started": self._started, "log": _end_of(self._log)}
        if self.has_exited():
            reason = last_line(self._log) or "It ended without a word."
            return ServerState(state="failed", reason=reason, **known)
        if about is None or not about["ready"]:
            return ServerState(state="loading", **known)
        return ServerState(state="ready", requests=about["requests"], self_test=about["self_test"], **known)

    def ask_to_end(self) -> None:
        self._group.signal(signal.SIGTERM)

    def close(self) -> None:
        self.ask_to_end()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._group.bury(_END_WITHIN_S)
                self._group.messages_in.close()
                self._group.messages_out.close()

    def _read_port(self) -> int | None:
        if self._port is None and not self._is_closed:
            readable = select.poll()
            readable.register(self._group.messages_out.fileno(), select.POLLIN)
            if readable.poll(0):
                found = _URL.search(self._group.messages_out.readline().decode("utf-8", "replace"))
                self._port = int(found[1]) if found else None
        return self._port


def _asked(port: int) -> dict[str, Any] | None:
    """Return ``ready``, ``self_test`` and ``requests`` of a server; None if it does not answer."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=_ANSWER_WITHIN_S)
    try:
        with contextlib.closing(connection):
            connection.request("GET", "/")
            (model,) = json.loads(connection.getresponse().read())["models"]
            connection.request("GET", "/metrics")
            counts = _REQUESTS.findall(connection.getresponse().read().decode())
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    return {"ready": model["ready"], "self_test": model["self_test"], "requests": sum(map(int, counts))}


def _end_of(log: Path) -> str:
    """Return the last lines of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
