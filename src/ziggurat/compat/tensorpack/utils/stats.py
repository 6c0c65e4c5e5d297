"""Counters and averages of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.errors import DataError, StateError

__all__ = ["Accuracy", "BinaryStatistics", "OnlineMoments", "RatioCounter", "StatCounter"]


class StatCounter:
    """Keeps values: numbers, or arrays of one shape."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self._values: list[Any] = []

    def feed(self, v: Any) -> None:
        """Keep a value."""
        self._values.append(v)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._values)

    @property
    def average(self) -> Any:
        """The mean of all elements."""
        return np.mean(self._some())

    @property
    def sum(self) -> Any:
        """The sum of all elements."""
        return np.sum(self._some())

    @property
    def max(self) -> Any:
        """The largest value."""
        return max(self._some())

    @property
    def min(self) -> Any:
        """The smallest value."""
        return min(self._some())

    def samples(self) -> Sequence[Any]:
        """Return all values."""
        return self._values

    def _some(self) -> list[Any]:
        if not self._values:
            raise StateError("The statistic has no value yet.", advice="Call `feed` before.")
        return self._values


class RatioCounter:
    """Counts events of a kind among all."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at zero."""
        self._count = 0
        self._total = 0

    def feed(self, count: int, total: int = 1) -> None:
        """Count events.

        Args:
            count: of the kind.
            total: of all kinds.
        """
        self._count += count
        self._total += total

    @property
    def ratio(self) -> float:
        """Share of the kind; 0 where nothing was counted."""
        return self._count / self._total if self._total else 0

    @property
    def count(self) -> int:
        """Events of the kind."""
        return self._count

    @property
    def total(self) -> int:
        """All events."""
        return self._total


class Accuracy(RatioCounter):
    """Counts right answers."""

    @property
    def accuracy(self) -> float:
        """Share of right answers; 0 where there were none at all."""
        return self.ratio


class BinaryStatistics:
    """Counts decisions between 1 and 0 against the truth."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at zero."""
        self.nr_pos = self.nr_neg = self.nr_pred_pos = self.nr_pred_neg = self.corr_pos = self.corr_neg = 0

    def feed(self, pred: np.ndarray, label: np.ndarray) -> None:
        """Count decisions.

        Args:
            pred: the decisions, 0 or 1, of any shape.
            label: the truth, of the same shape.

        Raises:
            DataError: where the shapes differ.
        """
        if pred.shape != label.shape:
            raise DataError(
                "Decisions and truth have one shape.",
                received=f"{pred.shape} and {label.shape}",
                advice="Compare both.",
            )
        self.nr_pos += int((label == 1).sum())
        self.nr_neg += int((label == 0).sum())
        self.nr_pred_pos += int((pred == 1).sum())
        self.nr_pred_neg += int((pred == 0).sum())
        self.corr_pos += int(((pred == 1) & (label == 1)).sum())
        self.corr_neg += int(((pred == 0) & (label == 0)).sum())

    @property
    def precision(self) -> float:
        """Share of the positive decisions that are right; 0 where there are none."""
        return self.corr_pos / self.nr_pred_pos if self.nr_pred_pos else 0

    @property
    def recall(self) -> float:
        """Share of the positive truth that was found; 0 where there is none."""
        return self.corr_pos / self.nr_pos if self.nr_pos else 0

    @property
    def false_positive(self) -> float:
        """What precision lacks to 1, as Tensorpack has it."""
        return 1 - self.precision if self.nr_pred_pos else 0

    @property
    def false_negative(self) -> float:
        """What recall lacks to 1."""
        return 1 - self.recall if self.nr_pos else 0


class OnlineMoments:
    """Mean and variance of values that are not kept (Welford, 1962)."""

    def __init__(self) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0

    def feed(self, x: Any) -> None:
        """Count a value: a number, or an array of one shape."""
        self._count += 1
        before = x - self._mean
        self._mean = self._mean + before / self._count
        self._squares = self._squares + before * (x - self._mean)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self._mean

    @property
    def variance(self) -> Any:
        """The mean squared difference from the mean."""
        return self._squares / self._count

    @property
    def std(self) -> Any:
        """The square root of the variance."""
        return np.sqrt(self.variance)
