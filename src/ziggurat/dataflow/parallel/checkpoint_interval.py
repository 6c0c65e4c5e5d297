"""Interval between resume points of a stage that reads ahead: long enough to be cheap, with a short replay."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["MARK_EVERY_AT_MOST", "CheckpointInterval"]

MARK_EVERY_AT_MOST = 4096
"""No more datapoints than these lie between two marks, so no more are read again on resuming."""

_EVERY_AT_LEAST = 32
_EVERY_S = 0.01


class CheckpointInterval:
    """Tells when the next mark is due.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._at = 0
        self._at_s = clock()

    def is_due(self, count: int) -> bool:
        """Tell whether to take a mark after ``count`` datapoints; if so, it counts as taken."""
        since = count - self._at
        if since < _EVERY_AT_LEAST:
            return False
        if since < MARK_EVERY_AT_MOST and self._clock() - self._at_s < _EVERY_S:
            return False
        self.taken(count)
        return True

    def taken(self, count: int) -> None:
        """Say that a mark was taken."""
        self._at = count
        self._at_s = self._clock()
