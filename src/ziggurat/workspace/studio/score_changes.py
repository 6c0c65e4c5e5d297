"""Differences between the scores that two models gave the same samples, with an interval of their mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

__all__ = ["ScoreChange", "ScoreVerdict", "score_change"]

ScoreVerdict = Literal["better", "worse", "equal"]

_MARGIN_SHARE: Final = 0.05
"""Of the standard deviation of the first scores: a smaller difference is none, unless a margin is given."""

_NORMAL_95: Final = 1.959964


@dataclass(frozen=True, kw_only=True)
class ScoreChange:
    """How the scores of samples differ; large scores are good.

    Args:
        places: ``better``, ``worse`` (the second model, by more than the margin) and ``equal`` → places of the samples,
            the largest difference first.
        gaps: (N) second score less the first; NaN where one of them is not known.
        margin: of the score.
        mean: of the differences; None where no pair of scores is known.
        interval: 95 % interval of the mean, by the normal approximation of the paired differences: mean ± 1.96
            standard errors; None with fewer than two known pairs.
        unknown: samples that are left out, because one of their scores is no finite number.
    """

    places: Mapping[ScoreVerdict, np.ndarray]
    gaps: np.ndarray
    margin: float
    mean: float | None
    interval: tuple[float, float] | None
    unknown: int


def score_change(first: np.ndarray, second: np.ndarray, margin: float | None = None) -> ScoreChange:
    """Return how the scores of a second model differ, sample by sample.

    Args:
        first: (N) scores.
        second: (N) scores of the same samples.
        margin: a smaller difference is none; None for 5 % of the standard deviation of the first scores.
    """
    with np.errstate(invalid="ignore"):
        gaps = second.astype(np.float64) - first
    known = np.flatnonzero(np.isfinite(gaps))
    values = gaps[known]
    least = margin if margin is not None else (_MARGIN_SHARE * float(first[known].std()) if len(known) else 0.0)
    order = known[np.argsort(-np.abs(values), kind="stable")]
    ordered = gaps[order]
    mean = float(values.mean()) if len(values) else None
    interval = None
    if mean is not None and len(values) > 1:
        reach = _NORMAL_95 * float(values.std(ddof=1)) / math.sqrt(len(values))
        interval = (mean - reach, mean + reach)
    return ScoreChange(
        places={
            "better": order[ordered > least],
            "worse": order[ordered < -least],
            "equal": order[np.abs(ordered) <= least],
        },
        gaps=gaps,
        margin=least,
        mean=mean,
        interval=interval,
        unknown=len(gaps) - len(values),
    )
