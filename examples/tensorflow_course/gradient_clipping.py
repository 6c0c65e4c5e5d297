"""Gradient clipping: a recurrent network at a learning rate that is too high for it, with and without limits.

Run it with ``python examples/tensorflow_course/gradient_clipping.py``. R. Pascanu, T. Mikolov, Y. Bengio, "On the
difficulty of training recurrent neural networks", ICML 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Accuracy, DigitsModel, arguments, dense, digits, train

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.callback import Callback

RATE = 2.0
LIMITS = {
    "none": "no limit",
    "value": "each number from -0.05 to 0.05",
    "norm": "all of them together at most 0.5 long",
}


class ClippedDescent(tf.train.GradientDescentOptimizer):
    """Gradient descent with limits.

    Args:
        clip: a key of ``LIMITS``.
    """

    def __init__(self, clip: str) -> None:
        super().__init__(RATE)
        self._clip = clip

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Limit the gradients, then take the step."""
        gradients, variables = zip(*grads_and_vars)
        norm = tf.global_norm(gradients)
        tf.identity(norm, name="gradient_norm")
        if self._clip == "value":
            gradients = [tf.clip_by_value(gradient, -0.05, 0.05) for gradient in gradients]
        elif self._clip == "norm":
            gradients, _ = tf.clip_by_global_norm(gradients, 0.5, use_norm=norm)
        return super().apply_gradients(zip(gradients, variables), global_step, name)


class Recurrent(DigitsModel):
    """Reads a digit row by row, and keeps 32 numbers in mind.

    Args:
        clip: a key of ``LIMITS``.
    """

    def __init__(self, clip: str) -> None:
        self._clip = clip

    def scores(self, image: Any) -> Any:
        """Return (N, 10)."""
        state = tf.zeros([tf.shape(image)[0], 32])
        state.set_shape([None, 32])
        for row in range(8):
            state = tf.nn.relu(dense(tf.concat([image[:, row, :, 0], state], axis=1), 32, "cell"))
        return dense(state, 10, "scores")

    def optimizer(self) -> Any:
        """Return the optimizer."""
        return ClippedDescent(self._clip)


class LargestNorm(Callback):
    """Remembers the largest norm of the gradients before they are limited."""

    def __init__(self) -> None:
        self.norm = 0.0

    def _before_run(self, _: Any) -> Any:
        return ["gradient_norm:0"]

    def _after_run(self, _: Any, values: Any) -> None:
        self.norm = float(np.fmax(self.norm, values.results[0]))


def main() -> None:
    """Train three times, and tell what became of each training."""
    options = arguments("Limits of gradients.", epochs=6)
    for clip, text in LIMITS.items():
        accuracy, norm = Accuracy(), LargestNorm()
        train(Recurrent(clip), digits(), [accuracy, norm], options.epochs)
        print(f"{clip} ({text}): accuracy {accuracy.values[-1]:.3f}, largest norm {norm.norm:.3g}")


if __name__ == "__main__":
    main()
