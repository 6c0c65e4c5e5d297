"""Processes of the studio benchmark: the real server, the baseline, the load generator, and stand-ins for workers."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import psutil

from ziggurat.workspace.server_process import running_server

__all__ = ["Load", "Server", "floor", "load", "serve", "workers"]

_START_WITHIN_S: Final = 300.0
_END_WITHIN_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Server:
    """A studio's server that answers.

    Args:
        address: such as ``http://127.0.0.1:40000``.
        process: of the server.
        start_s: from its start to its first answer.
    """

    address: str
    process: psutil.Process
    start_s: float

    def cpu_s(self) -> float:
        """Return the CPU time, user and system, of the server and of all processes that it started."""
        total = 0.0
        for each in (self.process, *self.process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                total += times.user + times.system
        return total

    def resident_bytes(self) -> int:
        """Return the resident memory of the server alone."""
        return self.process.memory_info().rss


@dataclass
class Load:
    """What a load came to, once it has ended.

    Args:
        streams: that were open.
        notices: that came, all streams together.
        changes: that were made.
    """

    streams: int = 0
    notices: int = 0
    changes: int = 0


@contextmanager
def serve(workspace: Path, database: str | None) -> Iterator[Server]:
    """Start ``ziggurat up`` on a free port and give it once it has answered a request; end it afterwards."""
    words = [sys.executable, "-m", "ziggurat", "--workspace", str(workspace), "up", "--port", "0", "--no-open"]
    words += [] if database is None else ["--database", database]
    began = time.perf_counter()
    with (workspace / "up.log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        address = _first_answer(workspace, process)
        start_s = time.perf_counter() - began
        watched = psutil.Process(process.pid)
        _wait_until_alone(watched)
        yield Server(address=address, process=watched, start_s=start_s)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def floor() -> Iterator[str]:
    """Give the address of the floor, see ``bench.parts.studio_floor``."""
    with _child("bench.parts.studio_floor") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        for _ in range(200):
            with contextlib.suppress(httpx.TransportError):
                httpx.get(address)
                break
            time.sleep(0.05)
        yield address


@contextmanager
def workers(folders: Sequence[Path]) -> Iterator[None]:
    """Let one process stand in for the workers of jobs."""
    with _child("bench.parts.studio_workers", *map(str, folders)) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the stand-in for workers did not start; see above")
        yield


@contextmanager
def load(address: str, jobs: Sequence[str], *, streams: int, per_second: float) -> Iterator[Load]:
    """Keep streams open and make changes, by a process of its own.

    Args:
        address: of the server.
        jobs: ids of those whose notes change.
        streams: how many.
        per_second: changes a second.
    """
    words = ["--streams", str(streams), "--per-second", str(per_second)]
    words += [word for job in jobs for word in ("--job", job)]
    came = Load()
    with _child("bench.parts.studio_load", address, *words) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("the load did not start; see above")
        yield came
        process.stdin.write("end\n")
        process.stdin.flush()
        for name, count in json.loads(process.stdout.readline()).items():
            setattr(came, name, count)


@contextmanager
def _child(module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    # In a session of its own: the server ends the process group of a worker that is gone.
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_END_WITHIN_S)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _first_answer(workspace: Path, process: subprocess.Popen[bytes]) -> str:
    last = time.monotonic() + _START_WITHIN_S
    while time.monotonic() < last and process.poll() is None:
        state = running_server(workspace)
        if state is not None and state.pid == process.pid:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{state.address}api/v1/counts", timeout=60).raise_for_status()
                return state.address.rstrip("/")
        time.sleep(0.01)
    raise RuntimeError(f"the server did not start: {(workspace / 'up.log').read_text()}")


def _wait_until_alone(process: psutil.Process) -> None:
    """Wait until the server has looked for the frameworks, which takes processes of its own."""
    last, quiet = time.monotonic() + _START_WITHIN_S, 0
    while time.monotonic() < last and quiet < 10:
        quiet = 0 if process.children(recursive=True) else quiet + 1
        time.sleep(0.1)
