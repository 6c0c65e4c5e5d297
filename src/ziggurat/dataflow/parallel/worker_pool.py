"""Worker pool interface for stages: threads, processes, or inline execution in the consumer."""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any

from ziggurat.dataflow.parallel.program import Fault, Program
from ziggurat.dataflow.policy import Failure
from ziggurat.errors import DatapointError, DataWorkerError, ZigguratError

__all__ = ["DatapointWorkerError", "InlineWorkerPool", "Report", "WorkerPool", "died", "raised"]


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
            lane: which worker shall do it, in a team where each worker has its own tasks.
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
        """Tell whether this process has started the workers; in a copy of it they are somebody else's."""
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


def raised(team: str, worker: int, fault: Fault, *, advice: str = "") -> DataWorkerError:
    """Return the error for a datapoint at which a worker raised.

    It is a ``DatapointError`` too where the datapoint is to blame, so that the handlers of a serial pipeline catch it.
    """
    failure = fault.failure
    rule = f"Worker {worker} of {team} raised {failure.kind} at datapoint {fault.index} of the pass."
    details = {"worker": worker, "index": fault.index, "key": str(failure.key), "type": failure.kind}
    if failure.skippable:
        error: DataWorkerError = DatapointWorkerError(rule, failure, advice=advice, details=details)
    else:
        received, words = failure.reason or failure.kind, failure.traceback
        error = DataWorkerError(rule, received=received, advice=advice, worker_traceback=words, details=details)
    error.add_note(f"In worker {worker}:\n{failure.traceback}")
    return error


def died(team: str, worker: int, code: int | None, *, label: str) -> DataWorkerError:
    """Return the error for a worker process that is not there any more.

    Args:
        team: name of the stage.
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
    return DataWorkerError(f"Worker {worker} of {team} {how}{doing}.", advice=advice, details=details)
