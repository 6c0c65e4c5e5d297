"""Means that carry their sums and weights, so that those of several batches add up to the mean over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["WeightedMean", "WeightedSum"]


@dataclass(frozen=True)
class WeightedSum:
    """One loss of some batches as a sum and its weight.

    Args:
        total: sum of the losses of all samples, each times its weight.
        weight: sum of the weights.
        divisor: sum of the divisors of the batches; it replaces a weight of 0.
        at_least: smallest divisor of a whole set; 0 for none.
    """

    total: float = 0.0
    weight: float = 0.0
    divisor: float = 0.0
    at_least: float = 0.0

    def __add__(self, other: WeightedSum) -> WeightedSum:
        """Return the sum of both, over the batches of both."""
        return WeightedSum(
            self.total + other.total,
            self.weight + other.weight,
            self.divisor + other.divisor,
            max(self.at_least, other.at_least),
        )

    @property
    def mean(self) -> float:
        """Weighted mean; NaN for no batch."""
        divisor = max(self.weight, self.at_least) or self.divisor
        return self.total / divisor if divisor else float("nan")


class WeightedMean(float):
    """Number of a batch that is no mean over its samples: it carries what it is the mean of.

    Args:
        value: number of the batch.
        sums: losses whose means add up to the number.
    """

    sums: tuple[WeightedSum, ...]

    def __new__(cls, value: float, sums: Sequence[WeightedSum]) -> WeightedMean:
        """Return the number with its sums."""
        made = super().__new__(cls, value)
        made.sums = tuple(sums)
        return made

    def __reduce__(self) -> tuple[type[WeightedMean], tuple[float, tuple[WeightedSum, ...]]]:
        """Return how a copy in another process is made."""
        return WeightedMean, (float(self), self.sums)
