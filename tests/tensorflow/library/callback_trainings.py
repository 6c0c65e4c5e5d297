"""Small trainings on graphs for the tests of callbacks, savers, loaders and predictors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.engine.callback import Callback
from ziggurat.engine.run_state import RunState
from ziggurat.tf import logger
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.trainers import SimpleTrainer

SIGNATURE = [tf.TensorSpec((None, 4), tf.float32, "x"), tf.TensorSpec((None,), tf.int32, "label")]
WIDTH = 4


def tower(x: Any, label: Any) -> Any:
    """A linear classifier of three classes with the names that the tutorial's callbacks ask for."""
    weights = tf.get_variable("linear/W", [WIDTH, 3], initializer=tf.zeros_initializer())
    bias = tf.get_variable("linear/b", [3], initializer=tf.zeros_initializer())
    logits = tf.add(x @ weights, bias, name="logits")
    wrong = tf.cast(tf.not_equal(tf.argmax(logits, 1, output_type=tf.int32), label), tf.float32)
    tf.identity(wrong, name="wrong-top1")
    tf.identity(wrong * 0.0, name="wrong-top5")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
    return tf.reduce_mean(each, name="cost")


def optimizer() -> Any:
    rate = tf.get_variable("learning_rate", initializer=0.1, trainable=False)
    return tf.train.AdamOptimizer(rate)


def samples(count: int, seed: int = 0) -> list[list[Any]]:
    """Return samples whose label is the place of the largest of the first three numbers."""
    numbers = np.random.default_rng(seed).normal(size=(count, WIDTH)).astype(np.float32)
    return [[row, np.int32(np.argmax(row[:3]))] for row in numbers]


def flow(count: int = 64, batch: int = 8, seed: int = 0, shuffle: bool = True) -> Any:
    return BatchData(DataFromList(samples(count, seed), shuffle=shuffle), batch, remainder=True).seed(3)


def train(
    callbacks: Sequence[Callback],
    *,
    folder: Path | None = None,
    epochs: int = 2,
    steps: int | None = 8,
    data: Any = None,
    get_cost: Any = tower,
    get_optimizer: Any = optimizer,
    state: RunState | None = None,
    monitors: Sequence[Any] = (),
    trainer: Any = None,
    **arguments: Any,
) -> SimpleTrainer:
    """Train in a new graph; return the trainer with its session still open."""
    if folder is not None:
        logger.set_logger_dir(folder, "keep")
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        made = SimpleTrainer() if trainer is None else trainer()
        made.setup_graph(SIGNATURE, FeedInput(flow() if data is None else data), get_cost, get_optimizer)
        made.resume_from(state)
        made.train(callbacks=callbacks, monitors=monitors, steps_per_epoch=steps, max_epoch=epochs, **arguments)
    return made


def variables(trainer: Any) -> dict[str, np.ndarray]:
    """Return the values of a trainer's variables by name."""
    return trainer.program.state()
