"""Batches that another process makes, so that decoding does not take turns with the steps for the interpreter.

PyTorch needs the interpreter for every operation that it hands to a GPU. Where threads of the same process decode
images, each of these operations waits for them, and the GPU waits with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

from ziggurat.dataflow.parallel.process_pool import ProcessSettings, ProcessWorkerPool
from ziggurat.dataflow.parallel.worker import Fault, Program
from ziggurat.dataflow.parallel.worker_pool import raised
from ziggurat.engine.feed import BatchCycle

__all__ = ["ApartCycle"]

_NAME: Final = "the data process"
_AHEAD: Final = 2
"""Batches that are asked for at a time: one is made while another one waits."""

_BUFFER_BYTES: Final = 512 << 20


class ApartCycle(BatchCycle):
    """A ``BatchCycle`` whose batches come from a process of their own: the same ones, with the same positions.

    Checkpoints do not tell where batches were made: one of a training with this may be resumed without it.

    Args:
        batches: stands where the process begins; its source is pickled.
    """

    def __init__(self, batches: BatchCycle) -> None:
        super().__init__(batches.source)
        self._position = batches.state()
        self._pool: ProcessWorkerPool | None = None

    def state(self) -> Any:
        """Return the position after the batch that was taken last, as JSON values."""
        return self._position

    def load_state(self, state: Any) -> None:
        """Go on where ``state()`` was called."""
        self.close()
        super().load_state(state)  # it says so here where the source is of another shape
        self._position = state

    def go_back_to(self, taken: int) -> None:
        """Refuse: a feed that makes batches ahead keeps positions of its own.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the process, and free the source."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        super().close()

    def worker_pids(self) -> list[int]:
        """Return the id of the process, where it runs."""
        return [] if self._pool is None else self._pool.pids()

    def _repeat(self) -> Iterator[Any]:
        settings = ProcessSettings(workers=1, lanes=True, buffer_bytes=_BUFFER_BYTES)
        pool = self._pool = ProcessWorkerPool(_NAME, _CycleProgram(self.source, self._position), settings)
        asked = 0
        try:
            while True:
                while asked < _AHEAD:
                    pool.submit(None)
                    asked += 1
                for report in pool.collect(wait=True):
                    asked -= 1
                    found = report.value()
                    if isinstance(found, Fault):
                        raise raised(_NAME, report.worker, found) from found.exception()
                    batch, self._position = found
                    pool.submit(None)
                    asked += 1
                    yield batch
        finally:
            pool.close()


def _keep_memory() -> None:
    """Let this process use the memory of decoded images again, where its C library can.

    Otherwise each image gets new pages from the kernel and gives them back, one thread at a time: about 75 page faults
    an image of 600 pixels, which all threads wait for.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in _KEPT_MEMORY:
            set_option(option, value)


_KEPT_MEMORY: Final = ((-3, 64 << 20), (-1, 512 << 20))
"""glibc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, and bytes: larger blocks are the kernel's, and a larger rest is given
back."""


class _CycleProgram(Program):
    """Makes one batch for each task.

    Args:
        source: of batches.
        position: where it begins.
    """

    def __init__(self, source: Any, position: Any) -> None:
        self._source = source
        self._position = position
        self._cycle: BatchCycle | None = None

    def for_worker(self, worker: int) -> _CycleProgram:
        """Return this one: there is one worker."""
        _keep_memory()
        return self

    def run(self, task: None) -> Any:
        """Return a batch, and the position behind it; or what went wrong."""
        try:
            if self._cycle is None:
                self._cycle = BatchCycle(self._source)
                self._cycle.load_state(self._position)
            batch = next(iter(self._cycle))
            self.index += 1
            return list(batch) if isinstance(batch, tuple) else batch, self._cycle.state()
        except Exception as error:
            return Fault.of(error, index=self.index).portable()
