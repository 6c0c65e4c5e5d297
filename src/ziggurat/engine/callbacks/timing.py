"""Performance metrics: throughput, step times, the bottleneck in one sentence, and host memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import say

__all__ = ["HostMemoryTracker", "StepTimes", "ThroughputTracker", "verdict"]

_LARGE_SHARE = 0.25


class ThroughputTracker(Callback):
    """Puts ``Throughput (steps/sec)`` or ``Throughput (samples/sec)`` after each epoch; callbacks' time is excluded.

    Args:
        samples_per_step: samples in a step, over all devices; None to count steps.
    """

    def __init__(self, samples_per_step: int | None = None) -> None:
        self._samples_per_step = samples_per_step
        self._steps = 0
        self._busy_s = 0.0

    def before_train(self) -> None:
        """Begin to count."""
        self._count()

    def trigger(self) -> None:
        """Put the throughput since the last time."""
        steps, busy_s = self._count()
        if not steps or busy_s <= 0:
            return
        rate = steps / busy_s
        if self._samples_per_step is None:
            self.trainer.put("Throughput (steps/sec)", rate)
        else:
            self.trainer.put("Throughput (samples/sec)", rate * self._samples_per_step)

    def _count(self) -> tuple[int, float]:
        timing = self.trainer.timing
        busy_s = timing.wait_s + timing.step_s
        passed = timing.steps - self._steps, busy_s - self._busy_s
        self._steps, self._busy_s = timing.steps, busy_s
        return passed


class StepTimes(Callback):
    """Puts ``StepTime/p50_ms`` and ``StepTime/p99_ms`` after each epoch, and says what holds the training up.

    A step time is waiting for the batch and the step itself, of the last 10,000 steps of the epoch. The sentence comes
    after the first epoch, and again when another thing becomes the bottleneck.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = (0.0, 0.0, 0.0)
        self._steps_before = 0
        self._bound = ""

    def before_train(self) -> None:
        """Begin to measure an epoch that is resumed in the middle."""
        self.before_epoch()

    def before_epoch(self) -> None:
        """Begin to measure."""
        timing = self.trainer.timing
        self._steps_before = timing.steps
        self._began = (self._clock(), timing.wait_s, timing.step_s)

    def after_epoch(self) -> None:
        """End the measurement before the slow work begins."""
        timing = self.trainer.timing
        began_s, wait_s, step_s = self._began
        self._began = (self._clock() - began_s, timing.wait_s - wait_s, timing.step_s - step_s)

    def trigger_epoch(self) -> None:
        """Put the times; say the sentence where it is new."""
        timing = self.trainer.timing
        steps = timing.steps - self._steps_before
        if not steps:
            return
        p50_s, p99_s = np.percentile([*timing.recent_s][-steps:], (50, 99))
        self.trainer.put("StepTime/p50_ms", 1000 * p50_s)
        self.trainer.put("StepTime/p99_ms", 1000 * p99_s)
        bound, sentence = verdict(*self._began)
        if bound != self._bound:
            self._bound = bound
            say(self.trainer, sentence)


def verdict(total_s: float, wait_s: float, step_s: float) -> tuple[str, str]:
    """Return what bounds the training (``input``, ``callback``, ``compute``), and a sentence with what to do.

    Args:
        total_s: time of the steps of an epoch, callbacks in it.
        wait_s: how much of it was spent waiting for batches.
        step_s: how much of it was spent inside steps.
    """
    callbacks_s = max(0.0, total_s - wait_s - step_s)
    shares = {"input": wait_s / total_s, "callback": callbacks_s / total_s} if total_s > 0 else {"input": 0.0}
    bound = max(shares, key=lambda name: shares[name])
    if shares[bound] < _LARGE_SHARE:
        return "compute", (
            "Compute-bound: nearly all of the time is spent in the steps themselves. To be faster, use a larger batch, "
            "lower precision or another device."
        )
    if bound == "input":
        return bound, (
            f"Input-bound: {shares[bound]:.0%} of the time is spent waiting for batches. Give the data pipeline more "
            "workers, let it prefetch, or store the data decoded; `stats()` of the data flow names the slow stage."
        )
    return bound, (
        f"Callback-bound: {shares[bound]:.0%} of the time is spent in callbacks between steps. Wrap those that act on "
        "every step in `PeriodicCallback` or `PeriodicTrigger`, or fetch fewer values."
    )


_GIGABYTE = 1024**3


class HostMemoryTracker(Callback):
    """Puts ``HostFreeMemory (GB)`` and ``ProcessMemory (GB)`` after each epoch, in units of 1024³ bytes.

    The first is what programs may still take without swapping, the second what this process holds (without its
    children).
    """

    def trigger(self) -> None:
        """Put both."""
        import psutil

        self.trainer.put("HostFreeMemory (GB)", psutil.virtual_memory().available / _GIGABYTE)
        self.trainer.put("ProcessMemory (GB)", psutil.Process().memory_info().rss / _GIGABYTE)
