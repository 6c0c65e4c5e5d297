"""Times of parts of a program."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from ziggurat.compat.tensorpack.utils.stats import StatCounter
from ziggurat.tf import logger

__all__ = ["IterSpeedCounter", "Timer", "print_total_timer", "timed_operation", "total_timer"]

_totals: defaultdict[str, StatCounter] = defaultdict(StatCounter)


class Timer:
    """Measures from its construction on, in seconds."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin at zero."""
        self._paused: float | None = None
        self._began = time.perf_counter()

    def pause(self) -> None:
        """Hold the time."""
        if self._paused is None:
            self._paused = time.perf_counter()

    def resume(self) -> None:
        """Let the time go on."""
        if self._paused is not None:
            self._began += time.perf_counter() - self._paused
            self._paused = None

    def is_paused(self) -> bool:
        """Return whether the time is held."""
        return self._paused is not None

    def seconds(self) -> float:
        """Return the time without pauses, in seconds."""
        return (self._paused or time.perf_counter()) - self._began


class IterSpeedCounter:
    """Prints the speed of a loop.

    Args:
        print_every: calls between two lines.
        name: what to call the loop.
    """

    def __init__(self, print_every: int, name: str | None = None) -> None:
        self.print_every = print_every
        self.name = name or "IterSpeed"
        self.reset()

    def reset(self) -> None:
        """Begin at zero."""
        self.cnt = 0
        self._timer = Timer()

    def __call__(self) -> None:
        """Count one turn."""
        self.cnt += 1
        if self.cnt % self.print_every == 0:
            each_s = self._timer.seconds() / self.cnt
            logger.info("%s: %d turns, %.4g s each", self.name, self.cnt, each_s)


@contextmanager
def timed_operation(msg: str, log_start: bool = False) -> Iterator[None]:
    """Log how long the block took.

    Args:
        msg: what it does.
        log_start: whether to log its beginning too.
    """
    if log_start:
        logger.info("%s begins.", msg)
    timer = Timer()
    try:
        yield
    finally:
        logger.info("%s: %.4g s", msg, timer.seconds())


@contextmanager
def total_timer(msg: str) -> Iterator[None]:
    """Add the time of the block to the total of its name, which ``print_total_timer`` logs."""
    timer = Timer()
    try:
        yield
    finally:
        _totals[msg].feed(timer.seconds())


def print_total_timer() -> None:
    """Log all totals: seconds, number of blocks and their mean."""
    for name, times in _totals.items():
        logger.info("%s: %.4g s in %d blocks, %.4g s each", name, times.sum, times.count, times.average)
