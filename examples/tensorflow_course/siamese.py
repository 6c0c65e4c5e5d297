"""A siamese network: two digits go through the same weights, and equal ones come to lie near each other.

Run it with ``python examples/tensorflow_course/siamese.py``. The contrastive loss is that of R. Hadsell, S. Chopra,
Y. LeCun, "Dimensionality reduction by learning an invariant mapping", CVPR 2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import BATCH_SIZE, arguments, convolution, dense, pooling, train

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFlow, DataFromList
from ziggurat.dataflow.dataset import SklearnDigits
from ziggurat.tf.callback import Callback
from ziggurat.tf.model import ModelDesc

MARGIN = 2.0


class Siamese(ModelDesc):
    """Places digits in a space of eight dimensions."""

    def inputs(self) -> list[Any]:
        """Return two images, and whether they are of one class."""
        return [
            tf.TensorSpec((None, 8, 8, 1), tf.uint8, "left"),
            tf.TensorSpec((None, 8, 8, 1), tf.uint8, "right"),
            tf.TensorSpec((None,), tf.float32, "is_same"),
        ]

    def build_graph(self, left: Any, right: Any, is_same: Any) -> Any:
        """Return the mean of (a distance)² for equal digits, and of (what it lacks of the margin)² for others."""
        squared = tf.reduce_sum(tf.square(self.place(left) - self.place(right)), axis=1)
        distance = tf.sqrt(squared + 1e-9, name="distance")
        lacking = tf.nn.relu(MARGIN - distance)
        return tf.reduce_mean(is_same * squared + (1 - is_same) * tf.square(lacking), name="cost")

    def place(self, image: Any) -> Any:
        """Return (N, 8), with the same variables for both images."""
        net = pooling(convolution(tf.cast(image, tf.float32) / 255.0, 16, "conv1"))
        net = pooling(convolution(net, 32, "conv2"))
        return dense(net, 8, "place")

    def optimizer(self) -> Any:
        """Return the optimizer."""
        return tf.train.AdamOptimizer(2e-3)


class PairAccuracy(Callback):
    """Prints how many pairs are told apart where half the margin is the border."""

    def __init__(self, pairs: list[Any]) -> None:
        self._left, self._right, self._is_same = (np.stack(parts) for parts in zip(*pairs))

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["left", "right"], ["distance"])

    def _trigger_epoch(self) -> None:
        (distances,) = self._predict(self._left, self._right)
        right = (distances < MARGIN / 2) == (self._is_same > 0)
        self.trainer.monitors.put_scalar("val/accuracy", float(right.mean()))
        print(f"epoch {self.epoch_num}: accuracy {right.mean():.3f}")


def pairs_of(split: str, count: int, seed: int) -> list[Any]:
    """Return [image, image, 1.0 or 0.0], half of them of one class."""
    random = np.random.RandomState(seed)
    images, labels = zip(*SklearnDigits(split, shuffle=False))
    classes = np.array(labels)
    pairs = []
    for number in range(count):
        first = random.randint(len(images))
        is_same = number % 2
        second = random.choice(np.flatnonzero((classes == classes[first]) == bool(is_same)))
        pairs.append([images[first], images[second], np.float32(is_same)])
    return pairs


def batches() -> DataFlow:
    """Return batches of the training pairs."""
    return BatchData(DataFromList(pairs_of("train", 3000, seed=1), shuffle=True), BATCH_SIZE).seed(1)


def main() -> None:
    """Train."""
    options = arguments("Digits that are equal lie near each other.", epochs=5)
    train(Siamese(), batches(), [PairAccuracy(pairs_of("val", 400, seed=2))], options.epochs)


if __name__ == "__main__":
    main()
