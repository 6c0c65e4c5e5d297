"""Batched background writer: items are accepted at once, and a thread writes them shortly after."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["BatchedWriter"]

_Item = TypeVar("_Item")


class BatchedWriter(Generic[_Item]):
    """Collects items and hands them to ``write`` in order: on ``flush()``, and otherwise every ``every_s`` seconds.

    Nothing is written by itself before ``start()``. Taking an item costs no more than an append. An error of ``write``
    in the thread is raised by the next ``put()`` or ``flush()``; afterwards nothing is written any more.

    Args:
        write: takes a list of items; never called by two threads at once.
        every_s: longest time, in seconds, that an item waits.
    """

    def __init__(self, write: Callable[[list[_Item]], None], every_s: float = 0.5) -> None:
        self._write = write
        self._every_s = every_s
        self._waiting: deque[_Item] = deque()
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_broken = False

    def start(self) -> None:
        """Start the thread; starting twice does nothing."""
        if self._thread is None:
            self._ended.clear()
            self._thread = threading.Thread(target=self._write_now_and_then, name="batched-writer", daemon=True)
            self._thread.start()

    def put(self, item: _Item) -> None:
        """Take one item."""
        self._waiting.append(item)
        if self._error is not None:
            self._raise()

    def flush(self) -> None:
        """Write everything that was taken."""
        self._write_waiting()
        if self._error is not None:
            self._raise()

    def close(self) -> None:
        """Write the rest and end the thread. What comes later is written by ``flush()`` only."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()
        self.flush()

    def _write_now_and_then(self) -> None:
        while not self._ended.wait(self._every_s):
            self._write_waiting()

    def _write_waiting(self) -> None:
        with self._turn:
            items = []
            while self._waiting:  # popped one by one: another thread may append meanwhile
                items.append(self._waiting.popleft())
            if items and not self._is_broken:
                try:
                    self._write(items)
                except BaseException as error:
                    self._is_broken = True
                    self._error = error

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
