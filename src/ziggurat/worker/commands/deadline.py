"""Deadlines for calls that may never return."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

__all__ = ["OVER", "Deadline"]

Result = TypeVar("Result")

OVER: Final[Any] = object()
"""What stands for a result that did not come in time."""


class _TimeUp(BaseException):
    """Ends a call; no ``except Exception`` of somebody's importer may hold it up."""


class Deadline:
    """Ends calls at a moment. It is used in the main thread, in a ``with`` statement.

    Args:
        time_limit_s: from the beginning of the ``with`` statement.
    """

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self._ends_calls = False
        self._end_at = 0.0

    def __enter__(self) -> Self:
        self._end_at = time.monotonic() + self._time_limit_s
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._time_limit_s)
        return self

    def __exit__(self, *_exc: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self._end_at

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a call gives, or ``OVER`` where it does not end in time; it is not begun after that."""
        try:
            try:
                if self.is_over:
                    return OVER
                self._ends_calls = True
                return function(*arguments)
            finally:
                self._ends_calls = False
        except _TimeUp:
            return OVER

    def _ring(self, *_arguments: Any) -> None:
        if self._ends_calls:
            raise _TimeUp
