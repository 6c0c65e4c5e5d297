"""Linear regression over four columns by gradient descent, beside scikit-learn's solution in closed form.

Run it with ``python examples/tensorflow_course/linear_regression.py``. The data are scikit-learn's diabetes patients:
body mass, blood pressure and two values of the blood serum, and how the illness went on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import arguments, train
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFlow, DataFromList
from ziggurat.tf.callback import Callback
from ziggurat.tf.model import ModelDesc

COLUMNS = ("bmi", "bp", "s3", "s5")


class Linear(ModelDesc):
    """A weighted sum of four columns."""

    def inputs(self) -> list[Any]:
        """Return rows (N, 4) and what they lead to (N, 1)."""
        return [tf.TensorSpec((None, 4), tf.float32, "row"), tf.TensorSpec((None, 1), tf.float32, "target")]

    def build_graph(self, row: Any, target: Any) -> Any:
        """Return the mean squared error."""
        weight = tf.get_variable("weight", [4, 1], initializer=tf.random_normal_initializer())
        bias = tf.get_variable("bias", [1], initializer=tf.ones_initializer())
        forecast = tf.add(tf.matmul(row, weight), bias, name="forecast")
        return tf.reduce_mean(tf.square(target - forecast), name="cost")

    def optimizer(self) -> Any:
        """Return the optimizer."""
        return tf.train.GradientDescentOptimizer(0.2)


class Result(Callback):
    """Reads weights and forecasts at the end.

    Args:
        rows: (N, 4), what is to be forecast.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["row"], ["forecast"])

    def _after_train(self) -> None:
        (self.forecast,) = self._predict(self._rows)
        variables = {each.op.name: each for each in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        self.weight = self.trainer.sess.run(variables["weight"])[:, 0]


def table() -> tuple[np.ndarray, np.ndarray]:
    """Return rows (442, 4) with mean 0 and deviation 1, and targets (442, 1), also scaled."""
    data = load_diabetes()
    rows = data.data[:, [data.feature_names.index(name) for name in COLUMNS]]
    target = data.target[:, None]
    return scaled(rows), scaled(target)


def scaled(columns: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and deviation 1."""
    return ((columns - columns.mean(0)) / columns.std(0)).astype(np.float32)


def one_batch(rows: np.ndarray, target: np.ndarray) -> DataFlow:
    """Return a flow whose only batch is the whole table."""
    return BatchData(DataFromList([[row, value] for row, value in zip(rows, target)], shuffle=False), len(rows))


def score(forecast: np.ndarray, target: np.ndarray) -> float:
    """Return R²: the share of the variance that the forecast explains."""
    return float(1 - ((forecast - target) ** 2).sum() / ((target - target.mean()) ** 2).sum())


def main() -> None:
    """Train, and set both solutions beside each other."""
    options = arguments("Linear regression by gradient descent.", epochs=100)
    rows, target = table()
    rows_train, rows_test, target_train, target_test = train_test_split(rows, target, test_size=0.2, random_state=0)
    result = Result(rows_test)
    train(Linear(), one_batch(rows_train, target_train), [result], options.epochs)
    known = LinearRegression().fit(rows_train, target_train)
    for name, ours, theirs in zip(COLUMNS, result.weight, known.coef_[0]):
        print(f"{name}: gradient descent {ours:.4f}, scikit-learn {theirs:.4f}")
    print(
        f"R² of the test rows: gradient descent {score(result.forecast, target_test):.4f}, "
        f"scikit-learn {known.score(rows_test, target_test):.4f}"
    )


if __name__ == "__main__":
    main()
