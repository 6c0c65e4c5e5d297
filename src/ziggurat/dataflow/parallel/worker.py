"""Main loop of a worker process: setup, then read a task, run it and write the result, repeatedly."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import pickle
import signal
import socket
import sys
import time
import traceback
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.parallel import lifeline
from ziggurat.dataflow.parallel.arena import HEADER_BYTES, Window
from ziggurat.dataflow.parallel.codec import Packed, pack, unpack
from ziggurat.dataflow.parallel.program import Fault, Program, seed_global_generators
from ziggurat.dataflow.parallel.wire import GENERATION_CELL, GRANT, RECORD_BYTES, Done, Outcome, Task, cell_of

__all__ = ["COPIED_BYTES", "close_all_but", "main"]

COPIED_BYTES = 65536
"""A message below this size is copied out of its slot: cheaper than watching who holds it."""


def main(descriptors: Sequence[int], settings: dict[str, Any], program: Program | None = None) -> None:
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
                signal.signal(number, lifeline.go_on)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
            _leave_standard_input()
            seed_global_generators(settings["seed"], settings["worker"])
            if program is None:
                program = _load(payload, settings["head_bytes"])
            _Desk(parent, tasks, done, Window(shared), settings["worker"]).work(program.for_worker(settings["worker"]))
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


class _Desk:
    """Where a worker sits: takes tasks from one side, puts results on the other."""

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
    """Read the program from its file; large arrays in it are shared with all workers until somebody writes to them."""
    memory = memoryview(mmap.mmap(payload, 0, access=mmap.ACCESS_COPY))
    surroundings: dict[str, Any] = pickle.loads(memory[:head_bytes])
    sys.path[:] = surroundings["path"]
    os.environ.update(surroundings["environment"])
    with contextlib.suppress(OSError):
        os.chdir(surroundings["folder"])
    return unpack(memory[head_bytes:])


def _leave_standard_input() -> None:
    """Let reading from the terminal end at once: it belongs to the parent."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
