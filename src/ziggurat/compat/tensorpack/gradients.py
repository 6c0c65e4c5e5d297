"""The optimizer that accumulates gradients, as Tensorpack had it."""

from __future__ import annotations

from typing import Any

from ziggurat.tf import optimizers

__all__ = ["AccumGradOptimizer"]


class AccumGradOptimizer(optimizers.AccumGradOptimizer):
    """Updates once in several steps, with the sum of their gradients.

    Args:
        opt: a ``tf.train.Optimizer``.
        niter: steps in an update, at least 1.
    """

    def __init__(self, opt: Any, niter: int) -> None:
        super().__init__(opt, niter, reduce="sum")
