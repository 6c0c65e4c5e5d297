"""Worker pools: their interface, the inline pool, thread pools, and the lifetime of a stage's pool.

Threads suit work that releases the GIL, as OpenCV and NumPy often do. The workers of a stage serve all its passes. They
are freed by ``close()``, when the stage is garbage-collected, when the interpreter exits, and shortly after a
pass is abandoned, unless the next one begins at once. So code that abandons every pass, as ``zip`` does, does not pay
for a new start each time.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ziggurat.dataflow.parallel.worker import Fault, Program
from ziggurat.dataflow.policy import Failure
from ziggurat.errors import DataError, DatapointError, DataWorkerError, ZigguratError

__all__ = ["InlineWorkerPool", "PoolLifetime", "Report", "ThreadWorkerPool", "WorkerPool", "died", "raised"]

_JOIN_S = 1.0
_STOP = None
LINGER_S = 1.0
"""How long idle workers are kept after a pass was broken off."""

_logger = logging.getLogger(__name__)


class DatapointWorkerError(DataWorkerError, DatapointError):
    """A worker raised at one datapoint: the key and reason that a serial stage names, and the worker's traceback."""

    def __init__(self, rule: str, failure: Failure, *, advice: str, details: dict[str, Any]) -> None:
        ZigguratError.__init__(self, rule, received=failure.reason or failure.kind, advice=advice, details=details)
        self.worker_traceback = failure.traceback
        self.key = failure.key
        self.reason = failure.sentence()


@dataclass
class Report:
    """A task that is done.

    Args:
        number: the task's.
        worker: who did it.
        result: what its program returned; a ``Fault`` where the task as a whole failed.
    """

    number: int
    worker: int
    result: Any

    def value(self) -> Any:
        """Return the result; call it once."""
        return self.result


class WorkerPool(ABC):
    """Workers that run one program.

    A task is submitted, and its report collected later, in any order.

    Args:
        name: what errors call the stage.
        workers: how many.
    """

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = workers
        self.busy_s = 0.0
        self.item_bytes = 0.0
        """About how large a message is for each of its datapoints; 0 where nothing is sent, or known yet."""

    @abstractmethod
    def room(self) -> bool:
        """Tell whether another task should be submitted now.

        Every task that is submitted is done, room or not; so a caller that waits for one submits it in any case.
        """

    @abstractmethod
    def submit(self, task: Any, *, items: int = 1, lane: int = 0, label: str = "") -> int:
        """Hand out a task; return its number.

        Args:
            task: what the program gets.
            items: how many datapoints will come of it, to judge the size of the result.
            lane: which worker shall do it, in a pool where each worker has its own tasks.
            label: what errors call it.
        """

    @abstractmethod
    def collect(self, *, wait: bool) -> list[Report]:
        """Return what is done; with ``wait`` at least one report, where any task is out.

        Raises:
            DataWorkerError: where a worker has died.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Forget all tasks that were submitted so far: nothing will be reported of them."""

    @abstractmethod
    def close(self) -> None:
        """End the workers and free everything."""

    def is_ours(self) -> bool:
        """Tell whether this process has started the workers; in a copy of it they belong to the original."""
        return True

    def healthy(self) -> bool:
        """Tell whether all workers live."""
        return True

    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        return []


class InlineWorkerPool(WorkerPool):
    """No workers: a task is done when it is submitted."""

    def __init__(self, name: str, program: Program) -> None:
        super().__init__(name, 0)
        self._program = program.for_worker(0)
        self._reports: deque[Report] = deque()
        self._number = 0

    def room(self) -> bool:
        return not self._reports

    def submit(self, task: Any, *, items: int = 1, lane: int = 0, label: str = "") -> int:
        self._number += 1
        began = time.perf_counter()
        try:
            result = self._program.run(task)
        except Exception as error:
            result = Fault.of(error, index=self._program.index)
        self.busy_s += time.perf_counter() - began
        self._reports.append(Report(self._number, 0, result))
        return self._number

    def collect(self, *, wait: bool) -> list[Report]:
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def abandon(self) -> None:
        self._reports.clear()

    def close(self) -> None:
        self._reports.clear()


def raised(pool: str, worker: int, fault: Fault, *, advice: str = "") -> DataWorkerError:
    """Return the error for a datapoint at which a worker raised.

    It is a ``DatapointError`` too where the datapoint is to blame, so that the handlers of a serial pipeline catch it.
    """
    failure = fault.failure
    rule = f"Worker {worker} of {pool} raised {failure.kind} at datapoint {fault.index} of the pass."
    details = {"worker": worker, "index": fault.index, "key": str(failure.key), "type": failure.kind}
    if failure.skippable:
        error: DataWorkerError = DatapointWorkerError(rule, failure, advice=advice, details=details)
    else:
        received, words = failure.reason or failure.kind, failure.traceback
        error = DataWorkerError(rule, received=received, advice=advice, worker_traceback=words, details=details)
    error.add_note(f"In worker {worker}:\n{failure.traceback}")
    return error


def died(pool: str, worker: int, code: int | None, *, label: str) -> DataWorkerError:
    """Return the error for a worker process that is not there any more.

    Args:
        pool: name of the stage.
        worker: its number.
        code: its exit code, minus the number of the signal, or None where the system did not tell.
        label: what it was doing.
    """
    details: dict[str, Any] = {"worker": worker, "exit_code": code, "task": label}
    advice = "Look at what it printed, or run the same with 0 workers."
    if code is None:
        how = "ended, and the system does not say how"
    elif code < 0:
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
        details["signal"] = -code
        if -code == signal.SIGKILL:
            advice = "Out of memory? Use fewer workers or a smaller buffer, or look into the system's log."
    else:
        how = f"ended by itself with exit code {code}"
    doing = f" while it worked on {label}" if label else ""
    return DataWorkerError(f"Worker {worker} of {pool} {how}{doing}.", advice=advice, details=details)


class _Shared:
    """What the threads know of their pool; they do not keep the pool itself alive."""

    def __init__(self, lanes: int) -> None:
        self.tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(lanes)]
        self.results: queue.SimpleQueue[tuple[int, Report, float]] = queue.SimpleQueue()
        self.generation = 0
        self.stopped = False


class ThreadWorkerPool(WorkerPool):
    """Threads of this process.

    Args:
        name: what errors call the stage.
        program: what they run, each its own ``for_worker()``.
        workers: how many.
        lanes: each worker has its own tasks; otherwise the first free worker takes the next.
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
        # A waiting thread must not keep a datapoint alive.
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


class PoolLifetime:
    """Holds the pool of one stage."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._user: object | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._busy_before_s = 0.0
        self.starts = 0
        """How many pools were started so far: the number of the pool that is there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (PoolLifetime, ())  # in another process, or in a copy of the stage: workers of its own

    @property
    def busy_s(self) -> float:
        """Seconds that workers have worked so far, added up over the workers."""
        with self._lock:
            return self._busy_before_s + (self._pool.busy_s if self._pool is not None else 0.0)

    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        with self._lock:
            return [] if self._pool is None else self._pool.pids()

    def claim(self, user: object, start: Callable[[], WorkerPool]) -> WorkerPool:
        """Return the pool, for a new pass; the pass that had it before is cut off.

        Args:
            user: stands for the pass.
            start: starts the pool where there is none.
        """
        with self._lock:
            self._stop_timer()
            if self._pool is not None and not self._pool.is_ours():
                self.close()
            elif self._pool is not None and not self._pool.healthy():
                _logger.warning("The workers of %s have gone meanwhile; new ones are started.", self._pool.name)
                self.close()
            if self._pool is None:
                self._pool = start()
                self.starts += 1
            elif self._user is not None:
                self._pool.abandon()
            self._user = user
            return self._pool

    def check(self, user: object) -> None:
        """Raise where ``user`` has lost the pool to a newer pass.

        Raises:
            DataError: in that case.
        """
        if self._user is not user:
            raise DataError(
                "A flow has one pass at a time, and a newer one of this flow has begun (or it was closed).",
                advice="Iterate one `iter(flow)` to its end, or build a second flow.",
            )

    def rest(self, user: object, *, finished: bool) -> None:
        """Give the pool back at the end of a pass.

        Args:
            user: who had it.
            finished: the pass came to its end.
        """
        with self._lock:
            if self._user is not user:
                return
            self._user = None
            if self._pool is None or finished:
                return
            # At the end of the interpreter the workers are gone already, and a thread cannot be started any more.
            if sys.is_finalizing() or not self._pool.is_ours() or not self._pool.healthy():
                self.close()
                return
            self._pool.abandon()
            self._start_timer()

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            self._stop_timer()
            self._user = None
            pool, self._pool = self._pool, None
            if pool is not None:
                self._busy_before_s += pool.busy_s
                pool.close()

    def _start_timer(self) -> None:
        def close_idle() -> None:
            with self._lock:
                if self._timer is timer:
                    self.close()

        timer = self._timer = threading.Timer(LINGER_S, close_idle)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # the interpreter is ending
            self.close()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
