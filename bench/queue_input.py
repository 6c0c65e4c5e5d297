"""Benchmark of input sources: the time of a step where a thread prepares its batches, against that with constant input.

The preparation is a map that sleeps, as one does that waits for a disk or for other processes. The step sleeps, too, as
the processor does while a GPU computes, and then trains a small network. All sides run in one process and take turns of
one epoch. The work at the end of an epoch is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.parts.report import Options, Report, Row, interval
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import Callback
from ziggurat.callbacks import Trainer as EngineTrainer
from ziggurat.dataflow import DataFlow, DataFromList, MapData
from ziggurat.tf.inputs.base import FeedInput, InputSource
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.inputs.tensors import DummyConstantInput
from ziggurat.tf.trainers import SimpleTrainer

__all__ = ["run"]

_STEPS = 50
_TURNS = 4
_BATCH, _WIDTH = 32, 256
_STEP_S, _SLEEP_S = 0.010, 0.006
_GOAL = 0.05
_CONSTANT, _QUEUE, _FEED = "constant input", "QueueInput, map that sleeps", "FeedInput, map that sleeps"


def run(options: Options) -> Report:
    """Measure."""
    sources: dict[str, Callable[[], InputSource]] = {
        _CONSTANT: lambda: DummyConstantInput([(_BATCH, _WIDTH), (_BATCH,)]),
        _QUEUE: lambda: QueueInput(_slow_flow()),
        _FEED: lambda: FeedInput(_slow_flow()),
    }
    rows = {name: Row(name, [], []) for name in sources}
    turns = {name: _Turns(make()) for name, make in sources.items()}  # the first epoch of each warms up
    try:
        for _ in range(_TURNS * options.rounds):
            for name, side in turns.items():
                cpu_s, wall_s = side.take()
                rows[name].cpu_us.append(1e6 * cpu_s / _STEPS)
                rows[name].wall_us.append(1e6 * wall_s / _STEPS)
    finally:
        for side in turns.values():
            side.close()
    constant = np.array(rows[_CONSTANT].wall_us)
    ratios = {name: interval(np.array(rows[name].wall_us) / constant) for name in (_QUEUE, _FEED)}
    return Report(
        f"Input sources: steps of {1000 * _STEP_S:g} ms, batches that take {1000 * _SLEEP_S:g} ms to prepare",
        "step",
        _CONSTANT,
        [
            f"{_TURNS * options.rounds} interleaved rounds of {_STEPS} steps a side in one process, warm-up dropped",
            f"wall time of a step, QueueInput / constant input: {ratios[_QUEUE]}; goal: within {_GOAL:.0%}",
            f"wall time of a step, FeedInput / constant input: {ratios[_FEED]}",
        ],
        list(rows.values()),
    )


class _Turns:
    """A training that takes an epoch at a time.

    Args:
        source: where its batches come from.
    """

    def __init__(self, source: InputSource) -> None:
        self._clock = _Clock()
        with tf.Graph().as_default():
            self._trainer = SimpleTrainer()
            signature = [tf.TensorSpec((_BATCH, _WIDTH), tf.float32, "x"), tf.TensorSpec((_BATCH,), tf.float32, "y")]
            self._trainer.setup_graph(signature, source, _cost, lambda: tf.train.GradientDescentOptimizer(1e-4))
            self._trainer.train([self._clock], steps_per_epoch=_STEPS, max_epoch=1)

    def take(self) -> tuple[float, float]:
        """Take an epoch; return the seconds of CPU time of the process, and of wall time."""
        EngineTrainer.train(self._trainer, self._trainer.epoch_num + 1)
        return self._clock.cpu_s, self._clock.wall_s

    def close(self) -> None:
        """Close the session."""
        self._trainer.program.close()


class _Clock(Callback):
    """Measures the steps of an epoch."""

    def __init__(self) -> None:
        self.cpu_s = self.wall_s = 0.0

    def before_epoch(self) -> None:
        """Begin."""
        self._began = time.process_time(), time.perf_counter()

    def after_epoch(self) -> None:
        """End."""
        cpu_s, wall_s = self._began
        self.cpu_s, self.wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s


def _cost(x: Any, y: Any) -> Any:
    weights = tf.get_variable("w", [_WIDTH, 1], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.py_func(_device, [], [])]):
        return tf.reduce_mean(tf.square(tf.reshape(x @ weights, [-1]) - y), name="cost")


def _device() -> None:
    """Take the time that a GPU takes."""
    time.sleep(_STEP_S)


def _slow_flow() -> DataFlow:
    random = np.random.default_rng(0)
    batches = [
        [random.random((_BATCH, _WIDTH), np.float32), random.random(_BATCH, np.float32)] for _ in range(16)
    ]  # fmt: skip

    def prepared(batch: Any) -> Any:
        time.sleep(_SLEEP_S)
        return batch

    return MapData(DataFromList(batches, shuffle=False), prepared)
