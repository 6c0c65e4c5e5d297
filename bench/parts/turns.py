"""Turns of benchmark sides that cannot share a process: each trains in its own and waits until it is called."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final
from unittest.mock import patch

import psutil

__all__ = ["Times", "Turns", "take_turns"]


class Times:
    """Microseconds a step, one number a round."""

    def __init__(self) -> None:
        self.cpu_us: list[float] = []
        self.wall_us: list[float] = []
        self.thread_us: list[float] = []


class Turns:
    """Waits for its turn before an epoch, and tells the times of its steps behind it.

    Args:
        line: to the process that measures.
    """

    def __init__(self, line: Connection) -> None:
        self.left_out_s = 0.0
        """CPU seconds of the thread that a side does not want to count as its own; they only grow."""
        self._line = line
        self._began = (0.0, 0.0, 0.0)

    def begin(self) -> None:
        """Wait, then start the clocks."""
        self._line.recv()
        self._began = self._clocks()

    def end(self) -> None:
        """Stop the clocks and tell."""
        self._line.send(tuple(now - then for now, then in zip(self._clocks(), self._began, strict=True)))

    def _clocks(self) -> tuple[float, float, float]:
        children_s = 0.0
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                children_s += sum(child.cpu_times()[:2])
        return time.process_time() + children_s, time.perf_counter(), time.thread_time() - self.left_out_s


_KEPT_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
"""Lets the C library keep memory that is freed. Else it gives gradients back to the system in each step and takes them
again, which costs up to milliseconds, in one side or the other by chance."""


def take_turns(
    sides: Mapping[str, Callable[[Any, Turns], None]], network: Any, steps: int, rounds: int
) -> dict[str, Times]:
    """Return side → times of its steps; the sides take turns, and the first two rounds warm up.

    Args:
        sides: each is called in a process of its own with the network and its turns, and trains until that is ended.
        network: what is trained.
        steps: steps in a turn.
        rounds: how many are measured.
    """
    context = multiprocessing.get_context("spawn")
    started: dict[str, tuple[Any, Connection]] = {}
    try:
        with patch.dict(os.environ, _KEPT_MEMORY):  # they are read when a process starts
            for name, side in sides.items():
                here, there = context.Pipe()
                process = context.Process(target=_train, args=(side, network, there))  # a side may start processes
                process.start()
                started[name] = process, here
        times = {name: Times() for name in started}
        for number in range(rounds + 2):
            for name, (_, line) in started.items():
                line.send("go")
                cpu_s, wall_s, thread_s = line.recv()
                if number > 1:
                    times[name].cpu_us.append(1e6 * cpu_s / steps)
                    times[name].wall_us.append(1e6 * wall_s / steps)
                    times[name].thread_us.append(1e6 * thread_s / steps)
    finally:
        for process, line in started.values():
            with suppress(OSError):
                line.close()
            process.kill()
            process.join()
    return times


def _train(side: Callable[[Any, Turns], None], network: Any, line: Connection) -> None:
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        side(network, Turns(line))
