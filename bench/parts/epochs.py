"""Epochs of a trainer taken one at a time, with the time of their steps alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from ziggurat.callbacks import Callback, Trainer

__all__ = ["EpochTurns"]


class EpochTurns:
    """Lets a trainer take one epoch at a time, and measures its steps.

    Args:
        trainer: the trainer.
        cpu_clock: seconds of CPU time: of the thread, or of the process.
    """

    def __init__(self, trainer: Trainer, cpu_clock: Callable[[], float]) -> None:
        self._trainer = trainer
        self._first, self._last = _Moment("after_epoch", cpu_clock), _Moment("before_epoch", cpu_clock)
        # Around all others: the clock starts when they have begun the epoch, and stops before they end it.
        trainer.callbacks.insert(0, self._first)
        trainer.callbacks.append(self._last)

    def take(self) -> tuple[float, float]:
        """Take an epoch; return the seconds of CPU time and of wall time of its steps."""
        self._trainer.train(self._trainer.epoch_num + 1)
        (cpu_0, wall_0), (cpu_1, wall_1) = self._last.at, self._first.at
        return cpu_1 - cpu_0, wall_1 - wall_0


class _Moment(Callback):
    """Notes the time of one hook."""

    def __init__(self, hook: str, cpu_clock: Callable[[], float]) -> None:
        self._hook = hook
        self._cpu_clock = cpu_clock
        self.at = (0.0, 0.0)

    def hooks(self) -> frozenset[str]:
        """Return the one hook."""
        return frozenset({self._hook})

    def before_epoch(self) -> None:
        """Note the time."""
        self.at = (self._cpu_clock(), time.perf_counter())

    def after_epoch(self) -> None:
        """Note the time."""
        self.at = (self._cpu_clock(), time.perf_counter())
