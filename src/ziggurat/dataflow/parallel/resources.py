"""System resources of a process pool (processes, pipes, sockets, files), and their release."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import socket
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from ziggurat.dataflow.parallel.arena import Window, anonymous_file
from ziggurat.dataflow.parallel.codec import ALIGNMENT_BYTES, pack
from ziggurat.dataflow.parallel.launch import (
    ForkedWorker,
    ServedWorker,
    SpawnedWorker,
    StartMethod,
    WorkerProcess,
    frameworks_in_use,
)
from ziggurat.dataflow.parallel.program import Program
from ziggurat.errors import UsageError

__all__ = ["ProcessSettings", "WorkerResources"]

_logger = logging.getLogger(__name__)

_GRACE_S = 0.2
_END_S = 2.0
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


@dataclass(frozen=True)
class ProcessSettings:
    """How a team of processes is set up.

    Args:
        workers: how many.
        lanes: each worker has its own tasks; otherwise whoever is free takes the next.
        buffer_bytes: shared memory for tasks and results together.
        start_method: see ``launch``; None chooses.
        seed: decides the workers' global random generators.
    """

    workers: int
    lanes: bool = False
    buffer_bytes: int = 256 << 20
    start_method: StartMethod | None = None
    seed: int = 0


class WorkerResources:
    """The descriptors and processes of one team.

    Args:
        shared: descriptor of the shared memory, which is closed with the rest.
    """

    def __init__(self, shared: int) -> None:
        self.owner = os.getpid()
        self.shared = shared
        self.tasks: list[int] = []
        self.done = -1
        self.sockets: list[socket.socket] = []
        self.processes: list[WorkerProcess] = []
        self._poll = select.poll()
        self._worker_of: dict[int, int] = {}
        self._closing = threading.Lock()
        self._closed = False
        _open_means.add(self)

    def start(self, name: str, program: Program, settings: ProcessSettings) -> None:
        """Start the workers.

        Raises:
            UsageError: where the program cannot be sent to a process.
        """
        method, payload, head_bytes = _payload(name, program, settings.start_method)
        theirs: list[int] = [] if payload is None else [payload]
        try:
            self.done, done_in = os.pipe()
            theirs.append(done_in)
            os.set_blocking(self.done, False)
            self._poll.register(self.done, _READABLE)
            queues: list[int] = []
            for _ in range(settings.workers if settings.lanes else 1):
                queue, queue_in = os.pipe()
                queues.append(queue)
                theirs.append(queue)
                self.tasks.append(queue_in)
            for worker in range(settings.workers):
                ours, own = socket.socketpair()
                with own:
                    descriptors = [own.fileno(), queues[worker % len(queues)], done_in, self.shared]
                    descriptors.append(self.shared if payload is None else payload)
                    told = {"worker": worker, "seed": settings.seed, "head_bytes": head_bytes}
                    self.sockets.append(ours)
                    self._worker_of[ours.fileno()] = worker
                    self._poll.register(ours, _READABLE)
                    self.processes.append(_start(method, descriptors, told, program))
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def ready(self, wait_ms: int) -> tuple[bool, int | None]:
        """Return whether results can be read, and a worker that is gone or has said its last words, or None."""
        any_done, gone = False, None
        for descriptor, _ in self._poll.poll(wait_ms):
            if descriptor == self.done:
                any_done = True
            else:
                gone = self._worker_of[descriptor]
        return any_done, gone

    def last_words(self, worker: int) -> tuple[bytes, int | None]:
        """Return what a worker said of its end, and its exit code."""
        words = b""
        with contextlib.suppress(OSError):
            self.sockets[worker].settimeout(_END_S)
            while part := self.sockets[worker].recv(65536):
                words += part
        return words, self.processes[worker].exit_code(_END_S)

    def close(self) -> None:
        """End all processes and close everything."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        _open_means.discard(self)
        for descriptor in self.tasks:
            os.close(descriptor)  # an idle worker ends by itself now
        until = time.monotonic() + _GRACE_S
        for process in self.processes:
            if process.exit_code(max(0.0, until - time.monotonic())) is None:
                process.kill()
        for process in self.processes:
            process.exit_code(_END_S)
            process.release()
        for each in self.sockets:
            each.close()
        os.close(self.shared)
        if self.done >= 0:
            os.close(self.done)

    def leave(self) -> None:
        """In a copy of this process: let go of everything; the workers belong to the original."""
        self._closed = True
        for descriptor in (*self.tasks, self.done):
            if descriptor >= 0:
                os.close(descriptor)
        for each in (*self.sockets, *self.processes):
            each.close() if isinstance(each, socket.socket) else each.leave()


_open_means: weakref.WeakSet[WorkerResources] = weakref.WeakSet()


def _start(method: StartMethod, descriptors: list[int], told: dict[str, Any], program: Program) -> WorkerProcess:
    if method == "fork":
        return ForkedWorker(descriptors, told, program)
    return (ServedWorker if method == "forkserver" else SpawnedWorker)(descriptors, told)


def _leave_all() -> None:
    for means in list(_open_means):
        means.leave()


os.register_at_fork(after_in_child=_leave_all)


def _payload(name: str, program: Program, method: StartMethod | None) -> tuple[StartMethod, int | None, int]:
    """Choose a start method; return it, a file with the program, and where in it the program begins."""
    if method == "fork":
        return method, None, 0
    if method not in (None, "forkserver", "spawn"):
        raise UsageError('`start_method` is one of "forkserver", "spawn" and "fork", or None.', received=repr(method))
    surroundings = {
        "path": [os.path.abspath(each) if each else os.getcwd() for each in map(str, sys.path)],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }
    head = pickle.dumps(surroundings)
    head += bytes(-len(head) % ALIGNMENT_BYTES)
    try:
        packed = pack(program)
    except Exception as error:  # pickle, and whatever a user's class raises
        obstacle = _obstacle_to_fork()
        if method is None and obstacle is None:
            _logger.warning("%s cannot be pickled (%s), so this process is forked.", name, error)
            return "fork", None, 0
        raise UsageError(
            f"What the workers of {name} run must be picklable.",
            received=f"{type(error).__name__}: {error}",
            advice="Open files and make locks in the worker, on first use (`prepare()` of a flow, or inside the "
            'function); or say start_method="fork"'
            + (f", which is not chosen by itself because {obstacle}." if obstacle else "."),
        ) from error
    file = anonymous_file(len(head) + packed.size_bytes)
    memory = Window(file).view(0, len(head) + packed.size_bytes)
    memory[: len(head)] = head
    packed.write(memory[len(head) :])
    return method or "forkserver", file, len(head)


def _obstacle_to_fork() -> str | None:
    frameworks = frameworks_in_use()
    if frameworks:
        return f"{frameworks[0]} is imported, and hangs in a fork"
    if threading.active_count() > 1:
        return f"this process has {threading.active_count()} threads"
    return None
