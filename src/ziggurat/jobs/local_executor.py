"""Local executor: workers are processes in their own sessions, started by one permanent thread."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import Heartbeat
from ziggurat.entities.processes import (
    LOG_LIMIT_BYTES,
    began_at,
    birth_of,
    find_worker,
    is_alive,
    kill_descendants,
    kill_group,
    kill_process,
    shim_of,
    start_worker,
)
from ziggurat.jobs.executor import Ended, Handle, Running
from ziggurat.layout import JobFolder

__all__ = [
    "LocalExecutor",
]


_DEVICES: Final = "CUDA_VISIBLE_DEVICES"
_DEVICE_ORDER: Final = "CUDA_DEVICE_ORDER"
_SPAWN_PATIENCE_S: Final = 60.0
_ALLOWANCE_S: Final = 1.0


class LocalExecutor:
    """Starts workers on this machine. They outlive this process, and are adopted by the next one.

    Args:
        command: starts a worker; the job folder is added.
        environment: of the workers, whole.
        nice_level: from 0 (normal) to 19 (only otherwise idle CPU time).
        log_limit_bytes: how large the log of a job may become; its beginning and its newest end are kept.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        nice_level: int = 0,
        log_limit_bytes: int = LOG_LIMIT_BYTES,
    ) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._nice_level = nice_level
        self._log_limit_bytes = log_limit_bytes
        self._host = socket.gethostname()
        self._ended: dict[tuple[int, float], Ended] = {}
        self._reaping = threading.Lock()
        self._asked: queue.SimpleQueue[tuple[Path, dict[str, str], Future[Handle]]] = queue.SimpleQueue()
        # A signal that a worker asks for at its parent's death follows the thread that started it, so that thread must
        # not end before the process does.
        threading.Thread(target=self._start_what_is_asked, name="worker-starter", daemon=True).start()

    def start(self, job_folder: Path, devices: Sequence[int], environment: Mapping[str, str]) -> Handle:
        """Start a worker that sees just the given accelerators, numbered as the driver's tools number them."""
        variables = {_DEVICE_ORDER: "PCI_BUS_ID", **self._environment, **environment}
        variables[_DEVICES] = ",".join(str(index) for index in devices)
        started: Future[Handle] = Future()
        self._asked.put((Path(job_folder), variables, started))
        return started.result(_SPAWN_PATIENCE_S)

    def poll(self, handle: Handle) -> Running | Ended:
        """Return how the worker is; one that another process started has no exit code."""
        key = (handle.pid, handle.birth)
        # The shim ends as the worker ended, but not before nothing is left of it.
        pid, birth = (handle.pid, handle.birth) if handle.shim is None else (handle.shim, handle.shim_birth)
        with self._reaping:
            if key in self._ended:
                return self._ended[key]
            code, is_child = _peek(pid)
            if is_child and code is None:
                return Running()
            if not is_child and is_alive(pid, birth):
                return Running()
            # Before its number is released, so that no other process can have it.
            kill_group(handle.pid, handle.birth)
            if is_child:
                _reap(pid)
            self._ended[key] = Ended(code)
            return self._ended[key]

    def ask_to_stop(self, handle: Handle, reason: str) -> None:
        """Write the stop request into the job folder."""
        atomic_write_text(JobFolder(handle.folder).stop_request, reason.strip() + "\n", "The stop request")

    def terminate(self, handle: Handle) -> None:
        """Send the worker SIGTERM."""
        with self._reaping:
            if is_alive(handle.pid, handle.birth):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(handle.pid, signal.SIGTERM)

    def kill(self, handle: Handle) -> None:
        """Kill the group of the worker and all that its shim has adopted; where only the shim is left, the shim."""
        with self._reaping:
            if (handle.pid, handle.birth) in self._ended:
                return
            was_alive = is_alive(handle.pid, handle.birth)
            kill_group(handle.pid, handle.birth)
            if handle.shim is not None and not kill_descendants(handle.shim, handle.shim_birth) and not was_alive:
                kill_process(handle.shim, handle.shim_birth)

    def adopt(self, folder: Path, heartbeat: Heartbeat | None) -> Handle | None:
        """Return the worker that its heartbeat names, or that was started for the folder and has no heartbeat yet."""
        if heartbeat is not None and heartbeat.host == self._host:
            began = began_at(heartbeat.pid)
            # A process that began after the heartbeat is another one with the same number.
            if began is not None and began <= heartbeat.time + _ALLOWANCE_S:
                return self._handle(folder, heartbeat.pid)
        pid = find_worker(folder, self._command)
        return None if pid is None else self._handle(folder, pid)

    def _handle(self, folder: Path, pid: int) -> Handle | None:
        birth = birth_of(pid)
        if birth is None:
            return None
        shim = shim_of(pid)
        shim_birth = None if shim is None else birth_of(shim)
        known = {} if shim_birth is None else {"shim": shim, "shim_birth": shim_birth}
        return Handle(folder=folder, pid=pid, host=self._host, birth=birth, **known)

    def _start_what_is_asked(self) -> None:
        while True:
            folder, environment, started = self._asked.get()
            try:
                started.set_result(self._spawn(folder, environment))
            except BaseException as error:
                started.set_exception(error)

    def _spawn(self, folder: Path, environment: Mapping[str, str]) -> Handle:
        log = JobFolder(folder).log
        command = [*self._command, str(folder)]
        pid, shim = start_worker(command, log, environment, log_limit_bytes=self._log_limit_bytes)
        if self._nice_level:
            _make_nice(pid, self._nice_level)
        births = {"birth": birth_of(pid) or 0.0, "shim_birth": birth_of(shim) or 0.0}
        return Handle(folder=folder, pid=pid, host=self._host, shim=shim, **births)


def _make_nice(pid: int, level: int) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, pid, level)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, or may not: it trains all the same


def _peek(pid: int) -> tuple[int | None, bool]:
    """Return the exit code of a child that has ended, without taking note of it; and whether it is a child."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None, False
    if ended is None:
        return None, True
    return (ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status), True


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
