"""Limit on concurrent processes that inspect networks: each takes seconds and a lot of memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ziggurat.workspace.passwords import TooBusyError

__all__ = ["Turns"]


class Turns:
    """Lets so many through at a time; the others wait a while, and are told to come back then.

    Args:
        count: how many at a time.
        wait_s: how long one waits for a turn.
    """

    def __init__(self, count: int, wait_s: float) -> None:
        self._count = count
        self._wait_s = wait_s
        self._free = threading.BoundedSemaphore(count)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Take a turn for as long as the block runs.

        Raises:
            TooBusyError: where none became free in time.
        """
        if not self._free.acquire(timeout=self._wait_s):
            raise TooBusyError(
                f"At most {self._count} networks are looked at at a time.",
                advice="Try again in a moment.",
                details={"retry_after_s": 10},
            )
        try:
            yield
        finally:
            self._free.release()
