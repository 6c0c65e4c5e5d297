"""Label-error candidates: samples whose class is improbable by predictions of models that did not see them."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["confident_joint", "label_candidates"]

_ROUNDING: Final = 1e-6
"""Probabilities are equal up to it: a sample of a class whose samples all have one probability reaches its mean."""


def label_candidates(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the samples whose label is probably wrong, the least probable label first.

    Confident learning, pruned by noise rate (Northcutt, Jiang and Chuang, "Confident learning: estimating uncertainty
    in dataset labels", JAIR 70, 2021, sections 3.1 and 3.2). The confident joint says how many samples that are labeled
    as one class are of another one. Of each such pair of classes, so many samples are candidates: those of the largest
    margin between the probabilities of the other class and of the label. A sample whose label is its most probable
    class is none.

    Args:
        probabilities: (N, K) of each sample, by a model that was fitted without it.
        labels: (N,) class numbers below K.

    Returns:
        (M,) int64 places.
    """
    expected = np.rint(confident_joint(probabilities, labels)).astype(np.int64)
    np.fill_diagonal(expected, 0)
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    is_candidate = np.zeros(len(labels), bool)
    for label, other in np.argwhere(expected):
        rows = np.flatnonzero(labels == label)
        behind = own[rows] - probabilities[rows, other]
        is_candidate[rows[np.argsort(behind, kind="stable")[: expected[label, other]]]] = True
    found = np.flatnonzero(is_candidate & (own < probabilities.max(axis=1, initial=-1.0)))
    return found[np.argsort(own[found], kind="stable")]


def confident_joint(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return how many samples of each label are of each class, estimated; section 3.1 of the paper.

    A sample counts for the most probable of the classes that are as probable for it as they are, on average, for the
    samples labeled with them; for none if there is no such class. The counts of a label are then scaled to the number
    of its samples.

    Args:
        probabilities: as for ``label_candidates``.
        labels: likewise.

    Returns:
        (K, K) float64: row is the label, column the class; each row sums to the number of samples with the label.
    """
    classes = probabilities.shape[1]
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    sizes = np.bincount(labels, minlength=classes)
    thresholds = np.full(classes, np.inf)
    np.divide(np.bincount(labels, own, classes), sizes, out=thresholds, where=sizes > 0)
    confident = np.where(probabilities >= thresholds - _ROUNDING, probabilities, -1.0)
    counted = confident.max(axis=1, initial=-1.0) >= 0
    joint = np.zeros((classes, classes))
    np.add.at(joint, (labels[counted], confident[counted].argmax(axis=1)), 1.0)
    # A label with samples has one that is right: without any confident sample, all are taken for right.
    np.fill_diagonal(joint, np.maximum(joint.diagonal(), 1.0))
    return joint * (sizes / joint.sum(axis=1))[:, None]
