"""Small models and data for tests of the library: a linear model over eight numbers, in both forms of ``ModelDesc``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.tf.model import InputDesc, ModelDesc
from ziggurat.tf.summary import add_moving_summary

BATCH, ROWS = 8, 64


@contextmanager
def own_graph(seed: int = 1) -> Iterator[Any]:
    """Give a graph of its own, in which unseeded initializers draw the same numbers with each call."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(seed)
        yield graph


def rows(count: int = ROWS, seed: int = 0) -> list[list[np.ndarray]]:
    """Return [x: (8,) float32, y: () float32], where y is a linear function of x."""
    random = np.random.RandomState(seed)
    weights = np.arange(8, dtype=np.float32) / 8
    xs = random.rand(count, 8).astype(np.float32)
    return [[x, np.float32(x @ weights)] for x in xs]


def batches(count: int = ROWS, *, shuffle: bool = True, seed: int = 3) -> Any:
    """Return a flow of batches of 8."""
    return BatchData(DataFromList(rows(count), shuffle=shuffle), BATCH).seed(seed)


class LinearModel(ModelDesc):
    """Least squares; with dropout where asked for."""

    def __init__(self, dropout: float = 0.0, rate: float = 0.1) -> None:
        self.dropout = dropout
        self.rate = rate

    def inputs(self) -> list[Any]:
        return [tf.TensorSpec((None, 8), tf.float32, "x"), tf.TensorSpec((None,), tf.float32, "y")]

    def build_graph(self, x: Any, y: Any) -> Any:
        if self.dropout and self.training:
            x = tf.nn.dropout(x, rate=self.dropout)
        w = tf.get_variable("w", [8, 1])
        predicted = tf.reshape(tf.matmul(x, w), [-1], name="predicted")
        tf.cast(tf.abs(predicted - y) > 0.1, tf.float32, name="wrong")
        cost = tf.reduce_mean(tf.square(predicted - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self) -> Any:
        rate = tf.get_variable("learning_rate", initializer=self.rate, trainable=False)
        return tf.train.MomentumOptimizer(rate, 0.9)


class OldLinearModel(ModelDesc):
    """The same in the form that the tutorial prints."""

    def _get_inputs(self) -> list[Any]:
        return [InputDesc(tf.float32, (None, 8), "x"), InputDesc(tf.float32, (None,), "y")]

    def _build_graph(self, inputs: list[Any]) -> None:
        x, y = inputs
        w = tf.get_variable("w", [8, 1])
        predicted = tf.reshape(tf.matmul(x, w), [-1], name="predicted")
        self.cost = tf.reduce_mean(tf.square(predicted - y), name="cost")

    def _get_optimizer(self) -> Any:
        return tf.train.GradientDescentOptimizer(0.1)
