"""Sums and weights of losses over the parts of a batch, for losses that are no means over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from ziggurat.backends.torch.batch_sums import Weight, WeightScale
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

__all__ = ["Weighing", "weighted_cost"]

_NUMBERS: Final = 3
"""Numbers of each loss: its sum, its weight, and its divisor."""


class Weighing:
    """Adds up the sum and the weight of each loss over the parts of a batch.

    Args:
        scales: of the weights of each loss, which keep gradients of half precision in range; None for a mean over rows.
        total: rows of the whole batch.
    """

    def __init__(self, scales: Sequence[WeightScale | None], total: int) -> None:
        self._scales = scales
        self._total = total
        self._sums: torch.Tensor | None = None

    @staticmethod
    def count(losses: int) -> int:
        """Return the length of ``sums()`` for so many losses."""
        return losses * _NUMBERS

    def add(
        self, losses: Sequence[torch.Tensor], weights: Sequence[Weight | None], share: float
    ) -> list[torch.Tensor | float]:
        """Take a part of the batch; return the factor of the gradients of each loss.

        Args:
            losses: of the part.
            weights: of the losses.
            share: of the rows of the whole batch.
        """
        factors: list[torch.Tensor | float] = []
        numbers: list[torch.Tensor] = []
        for loss, weight, scale in zip(losses, weights, self._scales, strict=True):
            value = loss.detach().float()
            factor: torch.Tensor | float = share
            parts = [value * share, value.new_tensor(share), value.new_tensor(share)]
            if weight is not None and scale is not None:
                unit = self._unit(scale)
                factor = weight.divisor * unit
                parts = [value * factor, weight.total * unit, factor]
            factors.append(factor)
            numbers += parts
        added = torch.stack(numbers)
        self._sums = added if self._sums is None else self._sums + added
        return factors

    def sums(self) -> torch.Tensor:
        """Return the numbers of all losses, float32; they are added up over devices."""
        return torch.zeros(self.count(len(self._scales))) if self._sums is None else self._sums

    def divisors(self, sums: torch.Tensor) -> list[torch.Tensor | None]:
        """Return the divisor of the gradients of each loss; None for nothing to divide by."""
        return [None if scale is None else self._divisor(number, sums) for number, scale in enumerate(self._scales)]

    def cost(self, sums: torch.Tensor) -> torch.Tensor:
        """Return the sum of all losses of the whole batch."""
        losses = range(len(self._scales))
        return torch.stack([sums[_NUMBERS * number] / self._divisor(number, sums) for number in losses]).sum()

    def _unit(self, scale: WeightScale) -> float:
        return 1.0 / (scale.of_row * self._total)

    def _divisor(self, number: int, sums: torch.Tensor) -> torch.Tensor:
        _, weight, divisor = sums[_NUMBERS * number : _NUMBERS * (number + 1)]
        scale = self._scales[number]
        if scale is not None and scale.at_least:
            return weight.clamp(min=scale.at_least * self._unit(scale))
        return torch.where(weight > 0, weight, divisor)


def weighted_cost(
    value: float, losses: Sequence[torch.Tensor], weights: Sequence[Weight | None], rows: int
) -> WeightedMean:
    """Return the cost of a batch with its sums and weights.

    Args:
        value: the cost.
        losses: The losses that add up to it.
        weights: of the losses; None for the number of rows.
        rows: of the batch.
    """
    sums = []
    for loss, weight in zip(losses, weights, strict=True):
        number = float(loss)
        if weight is None:
            sums.append(WeightedSum(number * rows, rows, rows))
        else:
            divisor = float(weight.divisor)
            sums.append(WeightedSum(number * divisor, float(weight.total), divisor, weight.at_least))
    return WeightedMean(float(value), sums)
