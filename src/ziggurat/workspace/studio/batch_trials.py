"""Test batches: a few steps of a training in a process of its own, one at a time, with memory, time and rates."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import psutil

from ziggurat.errors import JobError, MissingEntryError, TrainingError
from ziggurat.formatting import as_bytes
from ziggurat.specs import TrainSpec
from ziggurat.workspace.passwords import TooBusyError
from ziggurat.workspace.studio.machine import Machine
from ziggurat.workspace.studio.measurements import Measurements
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.training_estimates import with_times

__all__ = ["CANCELED", "TEST_BATCH_LIMIT_S", "StudioTestBatches"]

CANCELED: Final = "canceled"
"""``details["reason"]`` of the error of a test batch that was canceled."""

TEST_BATCH_LIMIT_S: Final = 300.0
"""Default time limit of a test batch."""

_WAIT_S: Final = 5.0
_MOST_KEPT: Final = 20
_RATE_BUDGET_S: Final = 40.0

_RESERVE_SHARE: Final = 0.04
"""Share of the machine's memory that a test batch leaves free: it is ended before the system kills other processes."""


class StudioTestBatches:
    """Test batches of a studio, one at a time: two would slow each other down. Any thread may call any method.

    Args:
        tasks: short processes around a training.
        machine: its memory.
        kept: stores the results.
    """

    def __init__(self, tasks: Tasks, machine: Machine, kept: Measurements) -> None:
        self._tasks = tasks
        self._machine = machine
        self._kept = kept
        self._free = threading.BoundedSemaphore(1)
        self._canceled: dict[str, threading.Event] = {}
        self._last: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def run(
        self, spec: TrainSpec, *, find_rate: bool = True, ticket: str = "", time_limit_s: float = TEST_BATCH_LIMIT_S
    ) -> dict[str, Any]:
        """Run a test batch.

        Args:
            spec: of the training, complete.
            find_rate: whether learning rates are tried, which takes most of the time.
            ticket: by which ``cancel`` ends it; empty for none.
            time_limit_s: how long it may take.

        Returns:
            The result of the task, with ``steps_per_epoch``, ``epoch_s`` and ``total_s`` of the whole training.

        Raises:
            TooBusyError: if another one is running.
            JobError: if it was canceled.
            TrainingError: if the machine runs out of memory.
            ZigguratError: if something is wrong with the data or the network.
        """
        if not self._free.acquire(timeout=_WAIT_S):
            raise TooBusyError(
                "Another test batch runs: two at a time would slow each other down.",
                advice="Try again when the other one has ended.",
                details={"retry_after_s": 20},
            )
        canceled = threading.Event()
        try:
            if ticket:
                self._canceled[ticket] = canceled
            found = self._run(spec, find_rate, canceled, time_limit_s)
            if ticket:
                self._keep(ticket, found)
            return found
        finally:
            self._canceled.pop(ticket, None)
            self._free.release()

    def cancel(self, ticket: str) -> None:
        """End a test batch.

        Raises:
            MissingEntryError: if no test batch with this ticket is running.
        """
        canceled = self._canceled.get(ticket)
        if canceled is None:
            raise MissingEntryError(f"There is no running test batch with the ticket {ticket}.")
        canceled.set()

    def _run(self, spec: TrainSpec, find_rate: bool, canceled: threading.Event, time_limit_s: float) -> dict[str, Any]:
        found = self._tasks.test_batch(
            spec.model_dump(mode="json"),
            find_rate=find_rate,
            rate_budget_s=min(_RATE_BUDGET_S, time_limit_s / 3),
            free_bytes=self._machine.strip()["memory"]["free_bytes"],
            time_limit_s=time_limit_s,
            watch=_watch(canceled, self._machine.memory_bytes),
        )
        self._kept.note_test_batch(spec, found)
        return with_times(found, spec)

    def last(self, ticket: str) -> dict[str, Any] | None:
        """Return the result of the last test batch with a ticket; None if there was none since the studio started."""
        return self._last.get(ticket)

    def _keep(self, ticket: str, found: dict[str, Any]) -> None:
        self._last.pop(ticket, None)
        self._last[ticket] = found
        while len(self._last) > _MOST_KEPT:
            self._last.popitem(last=False)


def _watch(canceled: threading.Event, memory_bytes: int) -> Callable[[int], None]:
    """Return a function that raises if a test batch is canceled, or takes memory that the machine needs."""
    reserve = int(memory_bytes * _RESERVE_SHARE)

    def look(pid: int) -> None:
        if canceled.is_set():
            raise JobError("The test batch was canceled.", details={"reason": CANCELED})
        try:
            taken = psutil.Process(pid).memory_info().rss
        except psutil.Error:
            return
        if psutil.virtual_memory().available < reserve or taken > memory_bytes - reserve:
            raise TrainingError(
                f"The training takes too much memory: {as_bytes(taken)} after some steps, of {as_bytes(memory_bytes)}.",
                advice="Reduce the batch size or the image size.",
            )

    return look
