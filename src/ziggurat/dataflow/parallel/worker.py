"""Workers: the interface of what they run, and the worker process with its loop, its pipes and its end.

A task or result record is one write of 64 bytes to a pipe, which the kernel keeps atomic: several workers read their
tasks from one pipe, the first free worker takes the next task, and all write their results to another pipe. Nothing can
be dropped: a pipe blocks or refuses when it is full. The data lies in shared memory.

No worker outlives its parent, however the parent ends. There are two mechanisms:

- *The parent-death signal* of Linux works even while foreign code blocks the interpreter. But it follows the *thread*
  that started the process: the kernel would kill a child at once when that thread ends. It is set only where that
  thread lives as long as its process.
- *A handle of the parent process* becomes readable when the parent has ended, whichever thread started the child. The
  fork server polls it; in other processes a thread sleeps until then.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import pickle
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np

from ziggurat.dataflow.parallel.pickling import dump
from ziggurat.dataflow.parallel.shared_memory import HEADER_BYTES, Packed, Window, pack, unpack
from ziggurat.dataflow.policy import Failure

__all__ = [
    "COPIED_BYTES",
    "GENERATION_CELL",
    "GRANT",
    "RECORD_BYTES",
    "WORKERS_AT_MOST",
    "Done",
    "Fault",
    "Outcome",
    "Program",
    "Task",
    "bind_to_parent",
    "cell_of",
    "close_all_but",
    "die_with_parent_thread",
    "go_on",
    "parent_handle",
    "run_worker",
    "seed_global_generators",
]

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0
_RECORD = struct.Struct("<8q")
RECORD_BYTES = _RECORD.size
GRANT = struct.Struct("<qq")
"""Offset and size of the slot that a worker asked for, on its own socket."""

GENERATION_CELL = 0
"""Place in the header of the shared memory, counted in 8 bytes: tasks of an older generation need no work."""

WORKERS_AT_MOST = 256
COPIED_BYTES = 65536
"""A message below this size is copied out of its slot: cheaper than watching who holds it."""


@dataclass(frozen=True)
class Fault:
    """One datapoint that failed in a worker.

    Args:
        failure: the error in words, with the worker's traceback.
        index: number of the datapoint in the pass.
        cause: the exception, or its pickled form, where it could be carried.
    """

    failure: Failure
    index: int
    cause: Exception | bytes | None = None

    @classmethod
    def of(cls, error: BaseException, *, index: int) -> Self:
        """Describe ``error``."""
        cause = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
        failure = Failure.of(cause, key=index)
        return cls(failure, index, cause)

    def portable(self) -> Fault:
        """Return the same without live objects, for another process."""
        carried = None
        try:
            carried = dump(self.cause, upwards=True)
            pickle.loads(carried)
        except Exception:  # whatever a user's exception class may raise
            carried = None
        return Fault(self.failure, self.index, carried)

    def exception(self) -> Exception | None:
        """Return the exception itself, where it could be carried."""
        if not isinstance(self.cause, bytes):
            return self.cause
        try:
            return pickle.loads(self.cause)
        except Exception:  # its class is known in the worker only
            return None


class Program(ABC):
    """What one worker does with its tasks."""

    index = 0
    """Number of the datapoint that is being computed."""

    @abstractmethod
    def for_worker(self, worker: int) -> Program:
        """Return what worker ``worker`` runs; called there, once."""

    @abstractmethod
    def run(self, task: Any) -> Any:
        """Do one task; errors of datapoints are part of the result."""

    def unsendable(self, error: Exception, _result: Any) -> Fault:
        """Describe why a result cannot leave the worker."""
        return Fault.of(error, index=self.index)


def seed_global_generators(*words: object) -> None:
    """Seed ``random`` and ``numpy.random``, which user code may draw from, in a way that depends on ``words``."""
    generator = random.Random(repr(words))
    random.seed(generator.getrandbits(64))
    np.random.seed(generator.getrandbits(32))


def run_worker(descriptors: Sequence[int], settings: dict[str, Any], program: Program | None = None) -> None:
    """Work until the parent closes the pipe of tasks; then end this process.

    Args:
        descriptors: own socket, pipe of tasks, pipe of results, shared memory, and the program's file.
        settings: ``worker``, ``seed`` and, for a program in a file, ``head_bytes``.
        program: what to run, where it was inherited and not sent.
    """
    own, tasks, done, shared, payload = descriptors
    code = 0
    with socket.socket(fileno=own) as parent:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, go_on)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
            _leave_standard_input()
            seed_global_generators(settings["seed"], settings["worker"])
            if program is None:
                program = _load(payload, settings["head_bytes"])
            _TaskLoop(parent, tasks, done, Window(shared), settings["worker"]).work(
                program.for_worker(settings["worker"])
            )
        except (BrokenPipeError, ConnectionError):
            code = 1  # the parent is gone
        except BaseException as error:
            code = 3
            words = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
            with contextlib.suppress(OSError):
                parent.sendall(json.dumps(words).encode())
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor that is not in ``kept``."""
    start = 0
    for descriptor in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        if start < descriptor:  # an empty range would mean all
            os.closerange(start, descriptor)
        start = descriptor + 1


class _TaskLoop:
    """Reads a task, runs it, and writes its result, until the pipe of tasks is closed."""

    def __init__(self, parent: socket.socket, tasks: int, done: int, window: Window, worker: int) -> None:
        self._parent = parent
        self._tasks = tasks
        self._done = done
        self._window = window
        self._worker = worker
        self._cells = np.frombuffer(window.view(0, HEADER_BYTES), np.int64)
        self._copies_input = False

    def work(self, program: Program) -> None:
        while record := os.read(self._tasks, RECORD_BYTES):
            task = Task.of(record)
            if self._cells[GENERATION_CELL] != task.generation:
                self._tell(Done(task.number, self._worker, Outcome.STALE))
                continue
            self._cells[cell_of(self._worker)] = task.number + 1
            began = time.perf_counter_ns()
            memory, held = self._input(task)
            outcome, packed = self._carry_out(program, memory)
            del memory
            target = self._target(task, packed.size_bytes)
            packed.write(target)
            size = packed.size_bytes
            del packed, target
            keeps = held is not None and held() is not None
            # One array that is kept would change under its holder's hands, so later tasks are copied.
            self._copies_input = self._copies_input or keeps
            self._cells[cell_of(self._worker)] = 0
            busy_ns = time.perf_counter_ns() - began
            self._tell(Done(task.number, self._worker, outcome, size, busy_ns, int(keeps)))

    def _input(self, task: Task) -> tuple[memoryview, weakref.ref[Any] | None]:
        if task.size < COPIED_BYTES or self._copies_input:
            return memoryview(bytearray(self._window.view(task.offset, task.size))), None
        lease = self._window.lease(task.offset, task.size)
        return lease.memory(), weakref.ref(lease)

    def _carry_out(self, program: Program, memory: memoryview) -> tuple[Outcome, Packed]:
        try:
            result = program.run(unpack(memory))
        except BaseException as error:
            return Outcome.FAILED, pack(Fault.of(error, index=program.index).portable())
        try:
            return Outcome.DONE, pack(result, upwards=True)
        except Exception as error:
            return Outcome.FAILED, pack(program.unsendable(error, result).portable())

    def _target(self, task: Task, size: int) -> memoryview:
        if size <= task.out_size:
            return self._window.view(task.out_offset, size)
        self._tell(Done(task.number, self._worker, Outcome.NEEDS_ROOM, size))
        grant = self._parent.recv(GRANT.size, socket.MSG_WAITALL)
        if len(grant) < GRANT.size:
            raise ConnectionError
        return self._window.view(*GRANT.unpack(grant))[:size]

    def _tell(self, done: Done) -> None:
        os.write(self._done, done.packed())


def _load(payload: int, head_bytes: int) -> Program:
    """Read the program from its file; large arrays in it are shared with all workers until one writes to them."""
    memory = memoryview(mmap.mmap(payload, 0, access=mmap.ACCESS_COPY))
    surroundings: dict[str, Any] = pickle.loads(memory[:head_bytes])
    sys.path[:] = surroundings["path"]
    os.environ.update(surroundings["environment"])
    with contextlib.suppress(OSError):
        os.chdir(surroundings["folder"])
    for module in surroundings["first"]:
        importlib.import_module(module)
    return unpack(memory[head_bytes:])


def _leave_standard_input() -> None:
    """Let reading from the terminal end at once: it belongs to the parent."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def cell_of(worker: int) -> int:
    """Return the place in the header where a worker notes the number of the task it is at, plus one; 0: none."""
    return 8 + worker


class Outcome(IntEnum):
    """What a result record says."""

    DONE = 0
    FAILED = 1
    NEEDS_ROOM = 2
    """The result does not fit: the worker waits for a slot of ``size`` bytes."""
    STALE = 3


class Task(NamedTuple):
    """Where a task lies, and where its result goes."""

    number: int
    generation: int
    offset: int
    size: int
    out_offset: int
    out_size: int

    def packed(self) -> bytes:
        """Return the record."""
        return _RECORD.pack(*self, 0, 0)

    @classmethod
    def of(cls, record: bytes) -> Task:
        """Return what the record says."""
        return cls(*_RECORD.unpack(record)[:6])


class Done(NamedTuple):
    """Result of a task.

    Args:
        number: that of the task.
        worker: who did it.
        outcome: what this record says.
        size: bytes of the result.
        busy_ns: time that it took.
        keeps_input: something in the worker still refers to the memory of the task.
    """

    number: int
    worker: int
    outcome: int
    size: int = 0
    busy_ns: int = 0
    keeps_input: int = 0

    def packed(self) -> bytes:
        """Return the record."""
        return _RECORD.pack(*self, 0, 0)

    @classmethod
    def of(cls, record: bytes | memoryview) -> Done:
        """Return what the record says."""
        return cls(*_RECORD.unpack(record)[:6])


def go_on(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by doing nothing.

    Ctrl-C and a scheduler's SIGTERM reach the whole process group. The parent decides what they mean; it may save a
    checkpoint, for which it needs its workers. A handler, other than SIG_IGN, is not passed on to programs that a map
    function starts.
    """


def bind_to_parent(parent: int, *, by_lasting_thread: bool) -> None:
    """Let this process end when process ``parent``, which started it, has ended.

    Args:
        parent: process id.
        by_lasting_thread: the thread that started this process lives as long as ``parent``.
    """
    if by_lasting_thread:
        die_with_parent_thread()
    handle = parent_handle(parent)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=watch_parent, args=(handle, parent), name="ziggurat-lifeline", daemon=True).start()


def die_with_parent_thread() -> None:
    """Ask the kernel for SIGKILL when the thread that started this process has ended (Linux only)."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        return


def parent_handle(parent: int) -> int | None:
    """Return a descriptor that becomes readable when ``parent`` has ended; None where the system has none."""
    try:
        return os.pidfd_open(parent)
    except (OSError, AttributeError):
        return None


def watch_parent(handle: int | None, parent: int) -> None:
    """Wait until ``parent`` has ended, then end this process."""
    if handle is not None:
        select.select([handle], [], [])
    else:
        sleeper = threading.Event()
        while os.getppid() == parent:
            sleeper.wait(_POLL_S)
    os.kill(os.getpid(), signal.SIGKILL)
