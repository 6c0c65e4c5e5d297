"""Figures that an operating point is chosen by: precision, recall and F1 at a threshold, and the best F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

__all__ = ["ChoosesThresholds", "ThresholdFigures", "ThresholdSamples"]


@dataclass(frozen=True)
class ThresholdFigures:
    """What a threshold gives.

    Args:
        threshold: scores from it on are predictions.
        precision: share of the predictions that are right; None without predictions.
        recall: share of the positives that are found; None without positives.
        f1: harmonic mean of both; None without predictions and positives.
    """

    threshold: float
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class ThresholdSamples:
    """Everything that might be predicted as one class on a split.

    Args:
        scores: (N) probability or score of each candidate.
        is_right: (N) bool, whether it would be right.
        positives: how many there are to be found, also those without a candidate.
        counts: (N) how many candidates each entry stands for, with at least its score; None for one.
    """

    scores: np.ndarray
    is_right: np.ndarray
    positives: int
    counts: np.ndarray | None = None

    def at(self, threshold: float) -> ThresholdFigures:
        """Return the figures at a threshold."""
        chosen = np.asarray(self.scores) >= np.asarray(threshold, self.scores.dtype)
        counts = self._counts
        predicted, right = int(counts[chosen].sum()), int(counts[chosen & self.is_right].sum())
        total = predicted + self.positives
        return ThresholdFigures(
            threshold=threshold,
            precision=right / predicted if predicted else None,
            recall=right / self.positives if self.positives else None,
            f1=2 * right / total if total else None,
        )

    def best(self, least: float = 0.0) -> ThresholdFigures | None:
        """Return the figures at the threshold with the best F1, the largest one of equals; None without positives.

        The threshold lies between two scores, and has as few decimals as that allows.

        Args:
            least: smallest threshold that may be chosen.
        """
        usable = np.isfinite(self.scores) & (self.scores >= least)
        order = np.argsort(-self.scores[usable], kind="stable")
        scores = self.scores[usable][order].astype(np.float64)
        if not self.positives or not len(scores):
            return None
        counts = self._counts[usable][order]
        right = np.cumsum(counts * self.is_right[usable][order])
        below = np.append(scores[1:], least)
        f1 = 2 * right / (np.cumsum(counts) + self.positives)
        f1[(scores == below) & (np.arange(len(scores)) < len(scores) - 1)] = -1  # equal scores stay together
        place = int(np.argmax(f1))
        if self.counts is not None:  # its candidates have at least this score, and no more is known of them
            return self.at(float(scores[place]))
        return self.at(_between(float(below[place]), float(scores[place])))

    @property
    def _counts(self) -> np.ndarray:
        return np.ones(len(self.scores), np.int64) if self.counts is None else self.counts


class ChoosesThresholds:
    """The part of a task that says what has a threshold in an operating point; by default nothing."""

    default_threshold: ClassVar[float] = 0.5
    """Threshold of a class for which an operating point names none."""

    least_threshold: ClassVar[float] = 0.0
    """The smallest threshold that may be chosen: what scores less is no prediction in any case."""

    def threshold_names(self, class_names: Sequence[str]) -> tuple[str, ...]:
        """Return what has a threshold in an operating point: names of classes, or a word for all; empty for nothing.

        Args:
            class_names: of the network.
        """
        return ()

    def has_thresholds(self, summary: Mapping[str, Any]) -> bool:
        """Return whether the predictions of an evaluation are such that thresholds say something of them.

        Args:
            summary: of the evaluation.
        """
        return True

    def threshold_samples(
        self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Sequence[ThresholdSamples]:
        """Return what the thresholds of an operating point are chosen by, one for each of ``threshold_names``.

        None where the results of an evaluation do not tell.

        Args:
            summary: of the evaluation.
            arrays: of its results, by name.
        """
        return ()


def _between(low: float, high: float) -> float:
    """Return a number above ``low`` and at most ``high``, near their middle, with few decimals."""
    middle = (low + high) / 2
    for decimals in (2, 3, 4, 6):
        found = round(middle, decimals)
        if low < found <= high:
            return found
    return high
