"""Averages of the weights, which everything but a training step computes with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["Averages"]


class Averages:
    """An exponential moving average of each trained parameter.

    After step t it is ``average -= (1 - d) * (average - parameter)`` with ``d = min(decay, (1 + t) / (10 + t))``, as on
    the TensorFlow backend: the smaller first decays let the averages leave the first weights soon. Means and variances
    of batch normalization are averages already, and not among the parameters.

    Args:
        decay: d in the long run, in (0, 1).
        parameters: those that are trained.
    """

    def __init__(self, decay: float, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self._decay = decay
        self.values = [each.detach().clone() for each in self.parameters]

    def start(self) -> None:
        """Begin at the parameters as they are now."""
        with torch.no_grad():
            for value, parameter in zip(self.values, self.parameters, strict=True):
                value.copy_(parameter)

    def move(self, step: int) -> None:
        """Follow the parameters after a step.

        Args:
            step: number of finished steps, this one included.
        """
        share = 1.0 - min(self._decay, (1.0 + step) / (10.0 + step))
        with torch.no_grad():
            for value, parameter in zip(self.values, self.parameters, strict=True):
                value.lerp_(parameter, share)

    def exchange(self) -> None:
        """Give each parameter the value of its average, and the average that of the parameter; again puts both back."""
        for number, parameter in enumerate(self.parameters):
            self.values[number], parameter.data = parameter.data, self.values[number]
