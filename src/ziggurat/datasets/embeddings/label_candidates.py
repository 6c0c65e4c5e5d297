"""Label-error candidates: samples whose class is improbable by predictions of models that did not see them."""

from __future__ import annotations

import numpy as np

__all__ = ["label_candidates"]


def label_candidates(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the samples whose label is probably wrong, the least probable label first.

    A sample is a candidate if another class is at least as probable as that class is, on average, for the samples that
    are labeled with it, and is more probable than its label (Northcutt, Jiang and Chuang, "Confident learning:
    estimating uncertainty in dataset labels", JAIR 70, 2021, section 3.1).

    Args:
        probabilities: (N, K) of each sample, by a model that was fitted without it.
        labels: (N,) class numbers below K.

    Returns:
        (M,) int64 places.
    """
    count, classes = probabilities.shape
    rows = np.arange(count)
    own = probabilities[rows, labels].astype(np.float64)
    sums, counts = np.bincount(labels, own, classes), np.bincount(labels, minlength=classes)
    thresholds = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    others = np.where(probabilities >= thresholds - 1e-9, probabilities, -1.0)
    others[rows, labels] = -1.0
    found = np.flatnonzero(others.max(axis=1, initial=-1.0) > own)
    return found[np.lexsort((found, own[found]))]
