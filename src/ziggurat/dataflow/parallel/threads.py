"""Thread pools, for work that releases the GIL, as OpenCV and NumPy often do."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from typing import Any

from ziggurat.dataflow.parallel.program import Fault, Program
from ziggurat.dataflow.parallel.worker_pool import Report, WorkerPool

__all__ = ["ThreadTeam"]

_JOIN_S = 1.0
_STOP = None


class _Shared:
    """What the threads know of their team; they do not keep the team itself alive."""

    def __init__(self, lanes: int) -> None:
        self.tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(lanes)]
        self.results: queue.SimpleQueue[tuple[int, Report, float]] = queue.SimpleQueue()
        self.generation = 0
        self.stopped = False


class ThreadTeam(WorkerPool):
    """Threads of this process.

    Args:
        name: what errors call the stage.
        program: what they run, each its own ``for_worker()``.
        workers: how many.
        lanes: each worker has its own tasks; otherwise whoever is free takes the next.
    """

    def __init__(self, name: str, program: Program, workers: int, *, lanes: bool = False) -> None:
        super().__init__(name, workers)
        self._shared = _Shared(workers if lanes else 1)
        self._out: set[int] = set()
        self._number = 0
        self._owner = os.getpid()
        self._threads = [
            threading.Thread(
                target=_work,
                args=(self._shared, self._shared.tasks[worker if lanes else 0], program, worker),
                name=f"ziggurat-data-{worker}",
                daemon=True,
            )
            for worker in range(workers)
        ]
        self._end = weakref.finalize(self, _end, self._shared, self._threads)
        for thread in self._threads:
            thread.start()

    def room(self) -> bool:
        return True

    def submit(self, task: Any, *, items: int = 1, lane: int = 0, label: str = "") -> int:
        self._number += 1
        self._out.add(self._number)
        self._shared.tasks[lane].put((self._shared.generation, self._number, task))
        return self._number

    def collect(self, *, wait: bool) -> list[Report]:
        reports: list[Report] = []
        while self._out:
            try:
                generation, report, busy_s = self._shared.results.get(block=wait and not reports)
            except queue.Empty:
                break
            self.busy_s += busy_s
            if generation == self._shared.generation:
                self._out.discard(report.number)
                reports.append(report)
        return reports

    def abandon(self) -> None:
        self._shared.generation += 1
        self._out.clear()

    def is_ours(self) -> bool:
        return self._owner == os.getpid()

    def healthy(self) -> bool:
        return not self._shared.stopped

    def close(self) -> None:
        self._end()


def _work(shared: _Shared, tasks: queue.SimpleQueue[Any], program: Program, worker: int) -> None:
    own: Program | None = None
    while True:
        item = tasks.get()
        if item is _STOP or shared.stopped:
            return
        generation, number, task = item
        if generation != shared.generation:
            continue
        began = time.perf_counter()
        try:
            if own is None:
                own = program.for_worker(worker)
            result = own.run(task)
        except BaseException as error:
            result = Fault.of(error, index=0 if own is None else own.index)
        del task, item
        shared.results.put((generation, Report(number, worker, result), time.perf_counter() - began))
        del result


def _end(shared: _Shared, threads: list[threading.Thread]) -> None:
    shared.stopped = True
    shared.generation += 1
    for tasks in shared.tasks:
        for _ in threads:
            tasks.put(_STOP)
    until = time.monotonic() + _JOIN_S
    for thread in threads:
        if thread is not threading.current_thread() and thread.is_alive():
            thread.join(max(0.0, until - time.monotonic()))
