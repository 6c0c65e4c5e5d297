"""Regularization: few samples, many weights, and a price for large ones (L2), for many (L1), or none.

Run it with ``python examples/tensorflow_course/regularization.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Accuracy, DigitsModel, arguments, dense, train

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFlow, DataFromList
from ziggurat.dataflow.dataset import SklearnDigits

PRICES = {"none": 0.0, "l2": 3e-3, "l1": 1e-3}
SAMPLES = 200


class Wide(DigitsModel):
    """One wide hidden layer.

    Args:
        kind: a key of ``PRICES``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def scores(self, image: Any) -> Any:
        """Return (N, 10), and put the price of the weights into their collection."""
        net = dense(tf.nn.relu(dense(image, 256, "hidden")), 10, "scores")
        if self.training and self._kind != "none":
            for variable in tf.trainable_variables():
                if variable.op.name.endswith("kernel"):
                    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, self.price(variable))
        return net

    def price(self, weights: Any) -> Any:
        """Return what the weights cost."""
        size = tf.nn.l2_loss(weights) if self._kind == "l2" else tf.reduce_sum(tf.abs(weights))
        return PRICES[self._kind] * size


class WeightNorm(Accuracy):
    """Also measures the weights while the session is open."""

    def _after_train(self) -> None:
        variables = self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
        kernels = [each for each in variables if each.op.name.endswith("kernel")]
        values = np.concatenate([value.ravel() for value in self.trainer.sess.run(kernels)])
        self.norm, self.small = float(np.linalg.norm(values)), float((np.abs(values) < 1e-2).mean())


def few_digits() -> DataFlow:
    """Return batches of the first training digits."""
    samples = list(SklearnDigits("train", shuffle=False))[:SAMPLES]
    return BatchData(DataFromList(samples, shuffle=True), 50).seed(1)


def main() -> None:
    """Train three times, and compare accuracy and weights."""
    options = arguments("A price for weights.", epochs=30)
    for kind in PRICES:
        measured = WeightNorm()
        train(Wide(kind), few_digits(), [measured], options.epochs)
        print(
            f"{kind}: accuracy {measured.values[-1]:.3f}, length of the weights {measured.norm:.2f}, "
            f"{100 * measured.small:.0f} % of them near zero"
        )


if __name__ == "__main__":
    main()
