"""LeNet as a class: layers are methods, and what it is made of are attributes.

Run it with ``python examples/tensorflow_course/lenet_class.py``. Y. LeCun, L. Bottou, Y. Bengio, P. Haffner,
"Gradient-based learning applied to document recognition", Proceedings of the IEEE 86(11), 1998.
"""

from __future__ import annotations

from typing import Any

from common import Accuracy, DigitsModel, arguments, convolution, dense, digits, pooling, train

from ziggurat.backends.tensorflow.runtime import tf


class LeNet:
    """Two convolutions with pooling, and two dense layers.

    Args:
        images: (N, H, W, C) float32.
        classes: how many there are.
        channels: of the convolutions.
    """

    def __init__(self, images: Any, classes: int = 10, channels: tuple[int, int] = (20, 50)) -> None:
        self.images = images
        self.first = pooling(convolution(images, channels[0], "conv1"))
        self.second = pooling(convolution(self.first, channels[1], "conv2"))
        self.hidden = tf.nn.relu(dense(self.second, 100, "hidden"))
        self.scores = dense(self.hidden, classes, "scores")

    @property
    def probabilities(self) -> Any:
        """(N, classes), one for each sample in all."""
        return tf.nn.softmax(self.scores, name="probabilities")


class Model(DigitsModel):
    """Trains the class."""

    def scores(self, image: Any) -> Any:
        """Return (N, 10)."""
        return LeNet(image).scores


def main() -> None:
    """Train."""
    options = arguments("LeNet as a class.", epochs=5)
    train(Model(), digits(), [Accuracy()], options.epochs)


if __name__ == "__main__":
    main()
