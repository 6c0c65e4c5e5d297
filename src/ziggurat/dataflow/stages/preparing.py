"""Stage that runs a user's function before the data: once per process, or once per pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow

__all__ = ["ProcessOnce"]


class ProcessOnce(ProxyDataFlow):
    """Calls a function before the first datapoint, in the process that reads the flow; passes the data on.

    For settings that belong to a process, such as the number of threads of OpenCV in each worker::

        ds = ProcessOnce(ds, functools.partial(cv2.setNumThreads, 1))

    Args:
        ds: a flow.
        func: called without arguments.
        every_pass: call it at the start of every pass (a resumed one too) instead of once in each process.
    """

    def __init__(self, ds: DataFlow, func: Callable[[], object], *, every_pass: bool = False) -> None:
        super().__init__(ds)
        self.func = func
        self.every_pass = every_pass

    def prepare(self) -> None:
        """Call the function in a new process."""
        if not self.every_pass:
            self.func()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the flow yields."""
        if self.every_pass:
            self.func()
        yield from self.ds
