"""Process pools: their processes, pipes, sockets and files, and the tasks that go through shared memory."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import select
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.dataflow.parallel.launch import (
    ForkedWorker,
    ServedWorker,
    SpawnedWorker,
    StartMethod,
    WorkerProcess,
    frameworks_in_use,
)
from ziggurat.dataflow.parallel.shared_memory import (
    ALIGNMENT_BYTES,
    HEADER_BYTES,
    Arena,
    Packed,
    Slot,
    Window,
    anonymous_file,
    pack,
    unpack,
)
from ziggurat.dataflow.parallel.worker import (
    COPIED_BYTES,
    GENERATION_CELL,
    GRANT,
    RECORD_BYTES,
    WORKERS_AT_MOST,
    Done,
    Outcome,
    Program,
    Task,
    cell_of,
)
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool, died
from ziggurat.errors import DataWorkerError, UsageError

__all__ = ["ProcessSettings", "ProcessWorkerPool", "import_first"]

_logger = logging.getLogger(__name__)

_GRACE_S = 0.2
_END_S = 2.0
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR

_TASKS_AT_MOST = 1000  # records that a pipe holds without blocking
_FIRST_RESULT_BYTES = 65536
_WAIT_MS = 1000


@dataclass(frozen=True)
class ProcessSettings:
    """How a pool of processes is set up.

    Args:
        workers: how many.
        lanes: each worker has its own tasks; otherwise the first free worker takes the next.
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
    """The descriptors and processes of one pool.

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
        _open_resources.add(self)

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
            # `collect` reads what is there; only the poll waits.
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
                    # A forked worker inherits the program, so its fifth descriptor is not used.
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
        _open_resources.discard(self)
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


_open_resources: weakref.WeakSet[WorkerResources] = weakref.WeakSet()


def _start(method: StartMethod, descriptors: list[int], told: dict[str, Any], program: Program) -> WorkerProcess:
    if method == "fork":
        return ForkedWorker(descriptors, told, program)
    return (ServedWorker if method == "forkserver" else SpawnedWorker)(descriptors, told)


def _leave_all() -> None:
    for resources in list(_open_resources):
        resources.leave()


os.register_at_fork(after_in_child=_leave_all)


_imported_first: dict[str, None] = {}


@contextlib.contextmanager
def import_first(module: str) -> Iterator[None]:
    """Let workers that start inside import a module before anything of the user's, such as one with an import hook.

    Args:
        module: its whole name.
    """
    _imported_first[module] = None
    try:
        yield
    finally:
        _imported_first.pop(module, None)


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
        "first": list(_imported_first),
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


@dataclass
class _PendingTask:
    """A task that was submitted and is not done."""

    number: int
    packed: Packed | None
    generation: int
    items: int
    lane: int
    label: str
    input_bytes: int
    input: Slot | None = None
    output: Slot | None = None


class _SharedReport(Report):
    """A report whose result still lies in its slot."""

    def __init__(self, pool: ProcessWorkerPool, pending: _PendingTask, done: Done) -> None:
        super().__init__(pending.number, done.worker, None)
        self._pool = pool
        self._size = done.size

    def value(self) -> Any:
        return self._pool._unpack(self.number, self._size)


class ProcessWorkerPool(WorkerPool):
    """Processes of this machine.

    Args:
        name: what errors call the stage.
        program: what they run.
        settings: how many, and how they are started.

    Raises:
        UsageError: where the program cannot be sent to a process.
    """

    def __init__(self, name: str, program: Program, settings: ProcessSettings) -> None:
        super().__init__(name, settings.workers)
        if not 0 < settings.workers <= WORKERS_AT_MOST:
            raise UsageError(f"`workers` is {settings.workers}; a stage has 0 to {WORKERS_AT_MOST}.")
        self._arena = Arena(settings.buffer_bytes)
        self._cells = np.frombuffer(self._arena.window.view(0, HEADER_BYTES), np.int64)
        self._resources = WorkerResources(self._arena.file)
        # Also at garbage collection and at the end of the interpreter.
        self._end = weakref.finalize(self, self._resources.close)
        self._number = 0
        self._generation = 0
        self._waiting: deque[_PendingTask] = deque()
        self._out: dict[int, _PendingTask] = {}
        self._unread: dict[int, Slot] = {}
        self._result_bytes = 0.0
        try:
            self._resources.start(name, program, settings)
        except BaseException:
            self._end()
            raise

    # ---- the interface of a pool

    def room(self) -> bool:
        if self._waiting or len(self._out) >= _TASKS_AT_MOST:
            return False
        # Until one result has come, the size of the slots is unknown.
        return self._result_bytes > 0 or len(self._out) < 2 * self.workers

    def submit(self, task: Any, *, items: int = 1, lane: int = 0, label: str = "") -> int:
        self._number += 1
        packed = pack(task)
        self._waiting.append(
            _PendingTask(self._number, packed, self._generation, items, lane, label, packed.size_bytes)
        )
        self._send_waiting()
        return self._number

    def collect(self, *, wait: bool) -> list[Report]:
        reports = self._receive(0)
        while wait and not reports and (self._out or self._waiting):
            self._send_waiting(must=not self._out)
            reports = self._receive(_WAIT_MS)
        self._send_waiting()
        return reports

    def abandon(self) -> None:
        self._generation += 1
        self._cells[GENERATION_CELL] = self._generation
        for pending in self._waiting:
            if pending.input is not None:
                self._arena.free(pending.input)
        self._waiting.clear()
        for slot in self._unread.values():
            self._arena.free(slot)
        self._unread.clear()

    def is_ours(self) -> bool:
        return self._resources.owner == os.getpid()

    def healthy(self) -> bool:
        return self._end.alive and self._resources.ready(0)[1] is None

    def pids(self) -> list[int]:
        return [process.pid for process in self._resources.processes]

    def close(self) -> None:
        self._end()

    # ---- out

    def _send_waiting(self, *, must: bool = False) -> None:
        while self._waiting and self._find_room(self._waiting[0], must=must):
            pending = self._waiting.popleft()
            assert pending.packed is not None
            assert pending.input is not None
            assert pending.output is not None
            pending.packed.write(self._arena.window.view(pending.input.offset, pending.packed.size_bytes))
            record = Task(
                pending.number,
                pending.generation,
                pending.input.offset,
                pending.packed.size_bytes,
                pending.output.offset,
                pending.output.size_bytes,
            )
            pending.packed = None  # the arrays of the task may go now
            self._out[pending.number] = pending
            must = False
            try:
                os.write(self._resources.tasks[pending.lane], record.packed())
            except BrokenPipeError:
                self._receive(_WAIT_MS)  # every worker is dead, so this raises

    def _find_room(self, pending: _PendingTask, *, must: bool) -> bool:
        assert pending.packed is not None
        pending.input = pending.input or self._arena.allocate(pending.packed.size_bytes, must=must)
        if pending.input is None:
            return False
        # A quarter more than the average; a worker whose result is larger asks for another slot.
        expected = int(self._result_bytes * pending.items * 1.25) + 1024 if self._result_bytes else _FIRST_RESULT_BYTES
        pending.output = self._arena.allocate(expected, must=must)
        return pending.output is not None

    # ---- in

    def _receive(self, wait_ms: int) -> list[Report]:
        if not self._end.alive:
            raise DataWorkerError(f"{self.name} was closed while it was iterated.", advice="Iterate it anew.")
        any_done, gone = self._resources.ready(wait_ms)
        reports: list[Report] = []
        if any_done:
            records = memoryview(os.read(self._resources.done, 1024 * RECORD_BYTES))
            for start in range(0, len(records), RECORD_BYTES):
                self._settle(Done.of(records[start : start + RECORD_BYTES]), reports)
        if gone is not None:
            raise self._obituary(gone)
        return reports

    def _settle(self, done: Done, reports: list[Report]) -> None:
        pending = self._out[done.number]
        assert pending.input is not None
        assert pending.output is not None
        if done.outcome == Outcome.NEEDS_ROOM:
            self._arena.free(pending.output)
            slot = pending.output = self._arena.allocate(done.size, must=True)
            assert slot is not None
            with contextlib.suppress(OSError):  # it died: its socket says so
                self._resources.sockets[done.worker].sendall(GRANT.pack(slot.offset, slot.size_bytes))
            return
        del self._out[done.number]
        self.busy_s += done.busy_ns / 1e9
        if not done.keeps_input:
            self._arena.free(pending.input)
        if pending.generation != self._generation:
            self._arena.free(pending.output)
            return
        self._result_bytes = max(done.size / pending.items, self._result_bytes * 0.98)
        self.item_bytes = max(self._result_bytes, pending.input_bytes / pending.items)
        self._unread[done.number] = self._arena.shrink(pending.output, done.size)
        reports.append(_SharedReport(self, pending, done))

    def _unpack(self, number: int, size: int) -> Any:
        slot = self._unread.pop(number)
        if size >= COPIED_BYTES and self._arena.leased_bytes + slot.size_bytes <= self._arena.size_bytes // 2:
            return unpack(self._arena.lease(slot))
        # Small, or the consumer holds much already: give it memory of its own, and use the slot again.
        copy = bytearray(self._arena.window.view(slot.offset, size))
        self._arena.free(slot)
        return unpack(memoryview(copy))

    def _obituary(self, worker: int) -> DataWorkerError:
        words, code = self._resources.last_words(worker)
        number = int(self._cells[cell_of(worker)]) - 1
        pending = self._out.get(number)
        self.close()
        if not words:
            return died(self.name, worker, code, label=pending.label if pending else "")
        said = json.loads(words)
        error = DataWorkerError(
            f"Worker {worker} of {self.name} could not begin its work.",
            received=said["error"],
            worker_traceback=said["traceback"],
            details={"worker": worker},
        )
        error.add_note(f"In worker {worker}:\n{said['traceback']}")
        return error
