"""Benchmark of training programs: ``ziggurat.tf`` against raw ``session.run``, ``tf_keras`` and Keras 3 ``fit``.

Every side is a process of its own that waits for its turn, because the frameworks cannot share one. All train the same
network by SGD with momentum on batches that lie in memory; only the steps are measured, not the ends of epochs.
Tensorpack takes part where it is installed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bench.parts.program_sides import LIMIT, OURS, RAW, SIDES, Network, missing
from bench.parts.report import Options, Report, Row

__all__ = ["run"]

_NETWORKS = {
    "one layer of 7,850 weights, batches of one sample": Network("tiny", 28, 1, 2000),
    "LeNet on 28 x 28, batches of 64": Network("lenet", 28, 64, 200),
    "a residual network of 8 layers on 32 x 32, batches of 32": Network("resnet", 32, 32, 100),
}
_GOAL, _GOAL_US = 0.35, 60.0


def run(options: Options) -> Report:
    """Measure."""
    notes, rows, left_out = [], [], {}
    for title, network in _NETWORKS.items():
        measured, absent = _measured(network, max(3, options.rounds))
        left_out |= absent
        ours, raw, limit = (measured[name] for name in (OURS, RAW, LIMIT))
        notes.append(
            f"{title}, CPU time: {OURS} / {RAW} {_interval(np.array(ours.cpu_us) / np.array(raw.cpu_us))}"
            + (f"; goal: at most {_GOAL}" if network.name == "tiny" else "")
        )
        own = np.array(ours.thread_us) - np.array(limit.thread_us)
        notes.append(
            f"{title}, own CPU time of the thread that trains, beyond a prepared call: {_interval(own, 0)} µs a step; "
            f"goal: at most {_GOAL_US:g}"
        )
        for name, side in measured.items():
            if name not in (OURS, RAW):
                ratio = np.array(ours.wall_us) / np.array(side.wall_us)
                notes.append(f"{title}, wall time: {OURS} / {name} {_interval(ratio)}")
            rows.append(Row(f"{network.name}: {name}", side.cpu_us, side.wall_us, is_limit=name == LIMIT))
    return Report(
        "Training programs: the same network, optimizer and batches",
        "step",
        f"tiny: {RAW}",
        [f"{options.rounds} interleaved rounds in one process tree, warm-up dropped; CPU time of each process", *notes],
        rows,
        left_out,
    )


class _Times:
    def __init__(self) -> None:
        self.cpu_us: list[float] = []
        self.wall_us: list[float] = []
        self.thread_us: list[float] = []


def _measured(network: Network, rounds: int) -> tuple[dict[str, _Times], dict[str, str]]:
    context = multiprocessing.get_context("spawn")
    started: dict[str, tuple[Any, Connection]] = {}
    absent = {name: reason for name in SIDES if (reason := missing(name))}
    try:
        for name in SIDES:
            if name not in absent:
                here, there = context.Pipe()
                process = context.Process(target=_side, args=(name, network, there), daemon=True)
                process.start()
                started[name] = process, here
        times = {name: _Times() for name in started}
        for number in range(rounds + 2):
            for name, (_, line) in started.items():
                line.send("go")
                cpu_s, wall_s, thread_s = line.recv()
                if number > 1:  # the first rounds warm up
                    times[name].cpu_us.append(1e6 * cpu_s / network.steps)
                    times[name].wall_us.append(1e6 * wall_s / network.steps)
                    times[name].thread_us.append(1e6 * thread_s / network.steps)
    finally:
        for process, line in started.values():
            with suppress(OSError):
                line.close()
            process.kill()
            process.join()
    return times, absent


class Turns:
    """Waits for its turn before an epoch, and tells the times of its steps behind it.

    Args:
        line: to the process that measures.
    """

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._began = (0.0, 0.0, 0.0)

    def begin(self) -> None:
        """Wait, then start the clocks."""
        self._line.recv()
        self._began = _clocks()

    def end(self) -> None:
        """Stop the clocks and tell."""
        self._line.send(tuple(now - then for now, then in zip(_clocks(), self._began, strict=True)))


def _clocks() -> tuple[float, float, float]:
    return time.process_time(), time.perf_counter(), time.thread_time()


def _side(name: str, network: Network, line: Connection) -> None:
    side: Callable[[Network, Turns], None] = SIDES[name]
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        side(network, Turns(line))


def _interval(values: np.ndarray, digits: int = 3) -> str:
    """Return the median of rounds and its 95 % interval, from 10,000 samples of them with replacement."""
    random = np.random.default_rng(0)
    medians = np.median(random.choice(values, (10_000, len(values))), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return f"{np.median(values):.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f})"
