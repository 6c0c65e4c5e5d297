"""Trainings that the tests of input sources and towers run: a small regression in a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFlow, DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.engine.run_state import RunState
from ziggurat.tf.inputs.base import InputSource
from ziggurat.tf.sessions import NewSessionCreator
from ziggurat.tf.trainers import SimpleTrainer

ROWS = 40


def signature() -> list[Any]:
    """Return the inputs: ``x`` of four numbers, ``y`` of one."""
    return [tf.TensorSpec((None, 4), tf.float32, "x"), tf.TensorSpec((None,), tf.float32, "y")]


def rows(count: int = ROWS) -> list[list[Any]]:
    random = np.random.RandomState(0)
    return [[random.rand(4).astype("f4"), np.float32(random.rand())] for _ in range(count)]


def shuffled_batches(size: int = 4) -> DataFlow:
    return BatchData(DataFromList(rows(), shuffle=True), size).seed(3)


def regression(x: Any, y: Any) -> Any:
    """Return the cost of two layers, with an embedding, whose gradient is sparse."""
    hidden = tf.nn.tanh(x @ tf.get_variable("v", [4, 5], initializer=tf.random_normal_initializer(seed=1)))
    table = tf.get_variable("table", [6, 5], initializer=tf.random_normal_initializer(seed=2))
    hidden += tf.nn.embedding_lookup(table, tf.cast(y * 5, tf.int32))
    w = tf.get_variable("w", [5, 1], initializer=tf.random_normal_initializer(seed=3))
    return tf.reduce_mean(tf.square(tf.reshape(hidden @ w, [-1]) - y), name="cost")


class Costs(Callback):
    """Notes the cost of every step, and asks for a stop after one of them."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.costs: list[float] = []
        self._stop_after = stop_after

    def declares(self) -> Sequence[str]:
        return ["cost"]

    def before_run(self) -> Sequence[str]:
        return ["cost"]

    def after_run(self, values: Any) -> None:
        self.costs.append(float(values["cost"]))
        if self.trainer.global_step == self._stop_after:
            self.trainer.request_stop()


@dataclass(frozen=True)
class Trained:
    costs: list[float]
    trainer: Any
    state: RunState

    @property
    def arrays(self) -> Any:
        return self.state.arrays


def trained(
    make_source: Callable[[], InputSource],
    make_trainer: Callable[[], Any] = SimpleTrainer,
    *,
    stop_after: int | None = None,
    state: RunState | None = None,
    steps: int = 5,
    epochs: int = 3,
    callbacks: Sequence[Callback] = (),
    optimizer: Callable[[], Any] = lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    cost: Callable[..., Any] = regression,
    inputs: Callable[[], list[Any]] = signature,
    processors: int = 1,
    session_init: Any = None,
) -> Trained:
    """Train, and return what each step cost and the state at the end."""
    with tf.Graph().as_default():
        trainer = make_trainer()
        costs = Costs(stop_after)
        trainer.setup_graph(inputs(), make_source(), cost, optimizer)
        trainer.resume_from(state)
        config = tf.ConfigProto(device_count={"CPU": processors}, allow_soft_placement=True)
        try:
            trainer.train(
                [costs, *callbacks],
                session_creator=NewSessionCreator(config=config),
                session_init=session_init,
                steps_per_epoch=steps,
                max_epoch=epochs,
            )
            return Trained(costs.costs, trainer, trainer.state())
        finally:
            if hasattr(trainer, "program"):
                trainer.program.close()


class FailingFlow(DataFlow):
    """Gives some batches, and then an error."""

    def __init__(self, good: int = 5) -> None:
        self.good = good

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.good):
            yield [np.ones((4, 4), "f4"), np.ones(4, "f4")]
        raise OSError("sample 7 cannot be read")
