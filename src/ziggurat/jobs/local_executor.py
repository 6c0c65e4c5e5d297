"""Local executor: workers are processes in their own sessions, started by one permanent thread."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import Heartbeat, NodeResources, Share, WorkerRef
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
from ziggurat.errors import JobError
from ziggurat.jobs.executor import Ended, ExecutorOptions, Running
from ziggurat.layout import JobFolder

__all__ = [
    "LOCAL",
    "LocalExecutor",
    "local_executor",
]


_DEVICES: Final = "CUDA_VISIBLE_DEVICES"
_DEVICE_ORDER: Final = "CUDA_DEVICE_ORDER"
LOCAL: Final = "local"
"""Name of the executor."""

_SPAWN_PATIENCE_S: Final = 60.0
_ALLOWANCE_S: Final = 1.0


class LocalExecutor:
    """Starts workers on this machine, its only node. They outlive this process, and are adopted by the next one.

    Args:
        command: starts a worker; the job folder is added.
        environment: of the workers, whole.
        resources: returns what this machine has for jobs; the executor gives it the host's name.
        nice_level: from 0 (normal) to 19 (only otherwise idle CPU time).
        log_limit_bytes: how large the log of a job may become; its beginning and its newest end are kept.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        resources: Callable[[], NodeResources] = NodeResources,
        nice_level: int = 0,
        log_limit_bytes: int = LOG_LIMIT_BYTES,
    ) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._resources = resources
        self._nice_level = nice_level
        self._log_limit_bytes = log_limit_bytes
        self._host = socket.gethostname()
        self._ended: dict[tuple[int, float], Ended] = {}
        self._reaping = threading.Lock()
        self._asked: queue.SimpleQueue[tuple[Path, dict[str, str], int, Future[WorkerRef]]] = queue.SimpleQueue()
        # A signal that a worker asks for at its parent's death follows the thread that started it, so that thread must
        # not end before the process does.
        threading.Thread(target=self._start_what_is_asked, name="worker-starter", daemon=True).start()

    def nodes(self) -> Sequence[NodeResources]:
        """Return this machine."""
        return (replace(self._resources(), name=self._host, executor=LOCAL),)

    def problem(self) -> str:
        """Return nothing: this machine is there."""
        return ""

    def start(
        self, job_folder: Path, placement: Sequence[Share], environment: Mapping[str, str], *, attempt: int
    ) -> WorkerRef:
        """Start a worker that sees just the given accelerators, numbered as the driver's tools number them."""
        elsewhere = [share.node for share in placement if share.node != self._host]
        if elsewhere or len(placement) != 1:
            raise JobError(
                "A worker of this machine has one share, on this machine.",
                received=f"{len(placement)} shares, on {', '.join(share.node for share in placement) or 'no node'}",
                advice=f"This machine is {self._host}.",
            )
        variables = {_DEVICE_ORDER: "PCI_BUS_ID", **self._environment, **environment}
        variables[_DEVICES] = ",".join(str(index) for index in placement[0].devices)
        started: Future[WorkerRef] = Future()
        self._asked.put((Path(job_folder), variables, attempt, started))
        return started.result(_SPAWN_PATIENCE_S)

    def poll(self, worker: WorkerRef) -> Running | Ended:
        """Return how the worker is; one that another process started has no exit code."""
        known = worker.opaque
        key = (known["pid"], known["birth"])
        # The shim ends as the worker ended, but not before nothing is left of it.
        pid, birth = key if known["shim"] is None else (known["shim"], known["shim_birth"])
        with self._reaping:
            if key in self._ended:
                return self._ended[key]
            code, is_child = _peek(pid)
            if is_child and code is None:
                return Running()
            if not is_child and is_alive(pid, birth):
                return Running()
            # Before its number is released, so that no other process can have it.
            kill_group(*key)
            if is_child:
                _reap(pid)
            self._ended[key] = Ended(code)
            return self._ended[key]

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        """Write the stop request into the job folder."""
        folder = Path(worker.opaque["folder"])
        atomic_write_text(JobFolder(folder).stop_request, reason.strip() + "\n", "The stop request")

    def terminate(self, worker: WorkerRef) -> None:
        """Send the worker SIGTERM."""
        pid, birth = worker.opaque["pid"], worker.opaque["birth"]
        with self._reaping:
            if is_alive(pid, birth):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)

    def kill(self, worker: WorkerRef) -> None:
        """Kill the group of the worker and all that its shim has adopted; where only the shim is left, the shim."""
        pid, birth = worker.opaque["pid"], worker.opaque["birth"]
        shim, shim_birth = worker.opaque["shim"], worker.opaque["shim_birth"]
        with self._reaping:
            if (pid, birth) in self._ended:
                return
            was_alive = is_alive(pid, birth)
            kill_group(pid, birth)
            if shim is not None and not kill_descendants(shim, shim_birth) and not was_alive:
                kill_process(shim, shim_birth)

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        """Return the worker that its heartbeat names, or that was started for the folder and has no heartbeat yet.

        What the store says of the worker counts for its number only: a process number from before the machine's last
        start may be another process by now.
        """
        attempt = 0 if worker is None else worker.attempt
        if heartbeat is not None and heartbeat.host == self._host:
            began = began_at(heartbeat.pid)
            # A process that began after the heartbeat is another one with the same number.
            if began is not None and began <= heartbeat.time + _ALLOWANCE_S:
                return self._adopted(folder, heartbeat.pid, attempt)
        pid = find_worker(folder, self._command)
        return None if pid is None else self._adopted(folder, pid, attempt)

    def _adopted(self, folder: Path, pid: int, attempt: int) -> WorkerRef | None:
        birth = birth_of(pid)
        if birth is None:
            return None
        shim = shim_of(pid)
        shim_birth = None if shim is None else birth_of(shim)
        if shim_birth is None:
            shim = None
        return self._ref(attempt, folder=folder, pid=pid, birth=birth, shim=shim, shim_birth=shim_birth or 0.0)

    def _ref(self, attempt: int, *, folder: Path, **known: Any) -> WorkerRef:
        opaque = {"folder": str(folder), "host": self._host, **known}
        return WorkerRef(executor=LOCAL, node=self._host, attempt=attempt, opaque=opaque)

    def _start_what_is_asked(self) -> None:
        while True:
            folder, environment, attempt, started = self._asked.get()
            try:
                started.set_result(self._spawn(folder, environment, attempt))
            except BaseException as error:
                started.set_exception(error)

    def _spawn(self, folder: Path, environment: Mapping[str, str], attempt: int) -> WorkerRef:
        log = JobFolder(folder).log
        command = [*self._command, str(folder)]
        pid, shim = start_worker(command, log, environment, log_limit_bytes=self._log_limit_bytes)
        if self._nice_level:
            _make_nice(pid, self._nice_level)
        births = {"birth": birth_of(pid) or 0.0, "shim_birth": birth_of(shim) or 0.0}
        return self._ref(attempt, folder=folder, pid=pid, shim=shim, **births)


def local_executor(options: ExecutorOptions) -> LocalExecutor:
    """Return the executor of this machine."""
    return LocalExecutor(
        options.command,
        options.environment,
        resources=options.resources,
        log_limit_bytes=options.log_limit_bytes,
    )


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
