"""TensorBoard processes for jobs: started on demand on a free loopback port, checked, ended when unused."""

from __future__ import annotations

import http.client
import os
import re
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from ziggurat.entities.processes import ProcessGroup, last_line
from ziggurat.errors import JobError, MissingDependencyError
from ziggurat.layout import JobFolder
from ziggurat.services.process_pool import ProcessPool
from ziggurat.services.tensorboard_process import MISSING

__all__ = ["TENSORBOARD_COMMAND", "ProxyTarget", "TensorBoardLimits", "TensorBoardStatus", "TensorBoards"]

TENSORBOARD_COMMAND: Final = (sys.executable, "-m", "ziggurat.services.tensorboard_process")
"""Starts a TensorBoard; options and the folder of its event files are added."""

_HOST: Final = "127.0.0.1"
_END_WITHIN_S: Final = 3.0
_CHECK_EVERY_S: Final = 10.0
_ANSWER_WITHIN_S: Final = 10.0
_LOOK_S: Final = 0.1
_JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ProxyTarget(NamedTuple):
    """Where a proxy finds a TensorBoard: it takes the paths of the studio, which begin with the prefix, unchanged."""

    host: str
    port: int
    prefix: str


@dataclass(frozen=True, kw_only=True)
class TensorBoardStatus:
    """One TensorBoard.

    Args:
        job_id: whose it is.
        pid: its process.
        port: on which it listens; None while it starts.
        idle_s: time since the last request.
    """

    job_id: str
    pid: int
    port: int | None
    idle_s: float


@dataclass(frozen=True, kw_only=True)
class TensorBoardLimits:
    """How many TensorBoards there are, and for how long.

    Args:
        idle_s: one without requests for so long is ended.
        most: of them at a time; for one more, the least recently used is ended.
        ready_within_s: longest time until one answers.
    """

    idle_s: float = 900.0
    most: int = 4
    ready_within_s: float = 60.0


class TensorBoards:
    """A TensorBoard for each viewed job. Any thread may call any method; use it as a context manager.

    Args:
        folder_of: job id → job folder; raises where there is no such job.
        environment: of the processes.
        prefix: path under which a job's TensorBoard stands in the studio, with ``{job_id}``.
        command: what starts one.
        logs: folder of their output; a temporary one where it is left out.
        limits: of their number and times.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        folder_of: Callable[[str], Path],
        environment: Mapping[str, str],
        *,
        prefix: str = "/jobs/{job_id}/tensorboard",
        command: Sequence[str] = TENSORBOARD_COMMAND,
        logs: Path | None = None,
        limits: TensorBoardLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder_of = folder_of
        self._environment = dict(environment)
        self._prefix = prefix
        self._command = tuple(command)
        self._temporary = tempfile.TemporaryDirectory(prefix="ziggurat-tensorboard-") if logs is None else None
        self._logs = logs or Path("." if self._temporary is None else self._temporary.name)
        limits = limits or TensorBoardLimits()
        self._ready_within_s = limits.ready_within_s
        self._clock = clock
        self._pool: ProcessPool[str, _Board] = ProcessPool(
            self._start, most=limits.most, idle_s=limits.idle_s, what="TensorBoards", clock=clock
        )

    def proxy_target(self, job_id: str) -> ProxyTarget:
        """Return where a job's TensorBoard answers; start it where it does not, or no more.

        Raises:
            MissingDependencyError: where TensorBoard is not installed.
            JobError: where it does not answer; its own words are shown.
        """
        if not _JOB_ID.fullmatch(job_id):
            raise JobError(f"{job_id!r} is no id of a job: it has letters, digits, `-`, `_` and `.`.")
        prefix = self._prefix_of(job_id)
        with self._pool.use(job_id, self._ready_within_s) as board:
            port = board.wait_until_ready(self._ready_within_s)
            if board.answers(self._clock()):
                return ProxyTarget(_HOST, port, prefix)
            board.close()
        with self._pool.use(job_id, self._ready_within_s) as board:  # a new one in place of that which was stuck
            return ProxyTarget(_HOST, board.wait_until_ready(self._ready_within_s), prefix)

    def status(self) -> list[TensorBoardStatus]:
        """Return those that there are, least recently used first."""
        now = self._clock()
        return [
            TensorBoardStatus(
                job_id=job_id,
                pid=place.process.pid,
                port=place.process.port,
                idle_s=0.0 if place.users else max(0.0, now - place.used_at),
            )
            for job_id, place in self._pool.entries()
            if place.process is not None
        ]

    def release(self, job_id: str) -> None:
        """End a job's TensorBoard, as before its folder is deleted."""
        self._pool.release(lambda key: key == job_id)

    def close(self) -> None:
        """End all of them with their helpers; closing twice does nothing."""
        self._pool.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _prefix_of(self, job_id: str) -> str:
        return self._prefix.replace("{job_id}", job_id)

    def _start(self, job_id: str) -> _Board:
        folder = JobFolder(self._folder_of(job_id)).tensorboard_root.resolve()
        prefix = self._prefix_of(job_id)
        command = [*self._command, "--prefix", prefix, "--end-with", str(os.getpid()), "--", str(folder)]
        return _Board(command, self._environment, self._logs / f"{job_id}.log", prefix)


class _Board:
    """One TensorBoard."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path, prefix: str) -> None:
        self.port: int | None = None
        self._log = log
        self._prefix = prefix
        self._lock = threading.Lock()
        self._checked_at: float | None = None
        self._is_closed = False
        self._group = ProcessGroup(command, environment, log)

    @property
    def pid(self) -> int:
        return self._group.pid

    def wait_until_ready(self, within_s: float) -> int:
        """Return the port once it answers there."""
        last = time.monotonic() + within_s
        with self._lock:
            if self.port is not None:
                return self.port
            port = self._read_port(last)
            if port is not None and self._asks(port, max(1.0, last - time.monotonic())):
                self.port = port
                return port
            self._end()
        raise JobError(
            f"TensorBoard did not answer within {within_s:g} s.",
            received=last_line(self._log) or "nothing",
            advice=f"Look at its output in {self._log}, and at its installation with: ziggurat doctor",
        )

    def answers(self, now: float) -> bool:
        """Return whether it still answers; it is asked from time to time only."""
        with self._lock:
            if self._checked_at is None or now - self._checked_at >= _CHECK_EVERY_S:
                is_there = self._checked_at is None or self._asks(self.port or 0, _ANSWER_WITHIN_S)
                self._checked_at = now if is_there else None
                return is_there
            return True

    def is_alive(self) -> bool:
        return not self._is_closed and not self._group.has_exited()

    def close(self) -> None:
        self._group.signal(signal.SIGTERM)  # before the lock: it ends the wait of its holder
        with self._lock:
            self._end()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._group.signal(signal.SIGTERM)
            self._group.bury(_END_WITHIN_S)
            self._group.messages_in.close()
            self._group.messages_out.close()

    def _read_port(self, last: float) -> int | None:
        readable = select.poll()
        readable.register(self._group.messages_out.fileno(), select.POLLIN)
        while not self._is_closed and time.monotonic() < last:
            if readable.poll(_LOOK_S * 1000):
                line = self._group.messages_out.readline().strip()  # one short write: all of it is there
                if line == MISSING:
                    self._end()
                    raise MissingDependencyError("tensorboard", extra="studio", purpose="opening TensorBoard")
                return int(line) if line.isdigit() else None
        return None

    def _asks(self, port: int, within_s: float) -> bool:
        connection = http.client.HTTPConnection(_HOST, port, timeout=within_s)
        try:
            connection.request("GET", f"{self._prefix}/data/environment")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
