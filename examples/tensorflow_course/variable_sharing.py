"""Variables that two branches share: a digit and its shifted copy go through the same weights.

Run it with ``python examples/tensorflow_course/variable_sharing.py``. A variable belongs to its name: with
``tf.variable_scope(..., reuse=tf.AUTO_REUSE)`` the first branch makes it, and the second one finds it.
"""

from __future__ import annotations

from typing import Any

from common import Accuracy, DigitsModel, arguments, convolution, dense, digits, pooling, train

from ziggurat.backends.tensorflow.runtime import tf


class Shared(DigitsModel):
    """Two branches with one set of weights; the class is read from the mean of what both find."""

    def scores(self, image: Any) -> Any:
        """Return (N, 10)."""
        shifted = tf.roll(image, shift=1, axis=2)
        return 0.5 * (self.branch(image) + self.branch(shifted))

    def branch(self, image: Any) -> Any:
        """Return (N, 10) of one branch."""
        net = pooling(convolution(image, 16, "conv1"))
        net = pooling(convolution(net, 32, "conv2"))
        return dense(net, 10, "scores")


def main() -> None:
    """Train, and list the variables: each one is there once."""
    options = arguments("Two branches, one set of weights.", epochs=6)
    trainer = train(Shared(), digits(), [Accuracy()], options.epochs)
    for variable in trainer.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES):
        print(f"variable {variable.op.name} {tuple(variable.shape.as_list())}")


if __name__ == "__main__":
    main()
