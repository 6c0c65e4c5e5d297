"""Rare classes seen more often: how often each sample of the training split is due in an epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from ziggurat.errors import DataError
from ziggurat.tasks.base import TaskContext

__all__ = ["check_oversampling", "repeat_factors"]


def repeat_factors(classes: Sequence[Collection[int]], share: float) -> np.ndarray:
    """Return how often each sample is due, (N) float64, at least 1.

    A class that fewer samples than ``share`` have is due √(share / its share) times, and a sample as often as the
    rarest of its classes; one without a class once. Gupta, Dollár and Girshick, "LVIS: A dataset for large vocabulary
    instance segmentation" (CVPR 2019), section 5.

    Args:
        classes: of each sample.
        share: of all samples, 0 to 1.
    """
    having = Counter(number for own in classes for number in set(own))
    factors = {number: max(1.0, (share * len(classes) / count) ** 0.5) for number, count in having.items()}
    return np.array([max((factors[number] for number in own), default=1.0) for own in classes])


def check_oversampling(share: float, context: TaskContext) -> None:
    """Refuse to see rare classes more often where samples have no classes.

    Raises:
        DataError: with the reason of the task.
    """
    reason = context.task.why_not_oversampled(context.schema) if share else ""
    if reason:
        raise DataError(
            f"Rare classes cannot be seen more often here. {reason}",
            received=f"`oversample_below` {share:g}",
            advice="Set it to 0.",
        )
