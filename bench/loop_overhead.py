"""Benchmark of loop overhead: the cost per step of the trainer with ten callbacks, against a bare loop.

Both run in one process and one thread and alternate: after each epoch of the trainer, the bare loop takes as many
steps with a program and batches of the same kind. The work at the end of an epoch (saving, logging) is not measured.
"""

from __future__ import annotations

import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.parts.epochs import EpochTurns
from bench.parts.report import Options, Report, Row
from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.callbacks import (
    Callback,
    EarlyStopping,
    KeepBest,
    ModelSaver,
    ProgressBar,
    Trainer,
    bind_folder,
    default_callbacks,
    default_monitors,
    make_schedule,
)
from ziggurat.engine.callbacks.learning_rate import LearningRateSchedule

__all__ = ["run"]

_STEPS = 4000
_GOAL_US = 5.0
_BARE, _NONE, _TEN = "bare loop", "trainer, no callbacks", "trainer, ten callbacks"


def run(options: Options) -> Report:
    """Measure."""
    rows = {name: Row(name, [], []) for name in (_BARE, _NONE, _TEN)}
    with tempfile.TemporaryDirectory() as folder:
        trainers = {_NONE: _trainer([], None), _TEN: _trainer(_ten_callbacks(), Path(folder))}
        turns: dict[str, Callable[[], tuple[float, float]]] = {
            _BARE: _bare_loop(),
            **{name: EpochTurns(trainer, time.thread_time).take for name, trainer in trainers.items()},
        }
        for number in range(options.rounds + 1):
            for name, take in turns.items():
                cpu_s, wall_s = take()
                if number:  # the first round warms up
                    rows[name].cpu_us.append(1e6 * cpu_s / _STEPS)
                    rows[name].wall_us.append(1e6 * wall_s / _STEPS)
    return Report(
        "The loop: a linear classifier of 10 weights, batches of one sample, NumPy backend",
        "step",
        _BARE,
        [f"{options.rounds} interleaved rounds of {_STEPS} steps a side in one process, warm-up dropped; medians"]
        + [_overhead(rows, name) for name in (_NONE, _TEN)]
        + [f"goal: at most {_GOAL_US:g} µs a step with ten callbacks"],
        list(rows.values()),
    )


def _overhead(rows: dict[str, Row], name: str) -> str:
    """Return a sentence with the median of the differences to the bare loop of the same round."""
    over = [one - bare for one, bare in zip(rows[name].cpu_us, rows[_BARE].cpu_us)]
    return f"overhead of the {name}: {statistics.median(over):.2f} µs a step ({min(over):.2f} to {max(over):.2f})"


def _ten_callbacks() -> list[Callback]:
    """Return what a job usually has: two that set and judge, two that save, and the defaults."""
    cosine = make_schedule("cosine")
    progress = ProgressBar(("cost",), mode="lines", stream=io.StringIO())
    return [
        LearningRateSchedule(cosine, 0.1),
        EarlyStopping("cost", patience=10**9),
        ModelSaver(),
        KeepBest("cost"),
        *default_callbacks(["cost"])[:-1],
        progress,
    ]


def _trainer(callbacks: list[Callback], folder: Path | None) -> Trainer:
    monitors = [] if folder is None else default_monitors(folder)[:-1]  # but the one that prints
    if folder is not None:
        bind_folder(callbacks, folder)
    return Trainer(_program(), _batches(), callbacks=callbacks, monitors=monitors, steps_per_epoch=_STEPS)


def _program() -> NullProgram:
    return NullProgram(4, 2, NullOptions(hidden=0))


def _batches() -> list[list[np.ndarray]]:
    random = np.random.default_rng(0)
    return [[random.random((1, 4), np.float32), np.array([number % 2])] for number in range(64)]


def _bare_loop() -> Callable[[], tuple[float, float]]:
    program, batches = _program(), _batches()
    program.declare(["cost"])

    def take() -> tuple[float, float]:
        began = time.thread_time(), time.perf_counter()
        for number in range(_STEPS):
            program.step(batches[number & 63], ())
        return time.thread_time() - began[0], time.perf_counter() - began[1]

    return take
