"""Classification metrics as pure functions of arrays: confusion, precision and recall, curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["class_curves", "class_figures", "confusion_matrix", "threshold_figures", "top_share"]


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Return how often each class was taken for each: (classes, classes) int64, a row for each label.

    Args:
        labels: (N) class numbers; samples with -1 are not counted.
        predicted: (N) class numbers.
        classes: how many there are.
    """
    known = labels >= 0
    places = labels[known].astype(np.int64) * classes + predicted[known]
    return np.bincount(places, minlength=classes * classes).reshape(classes, classes)


def class_figures(matrix: np.ndarray, names: Sequence[str], support: np.ndarray | None = None) -> list[dict[str, Any]]:
    """Return ``name``, ``precision``, ``recall``, ``f1`` and ``support`` of each class; None where one is not defined.

    Args:
        matrix: a confusion matrix.
        names: of the classes, by number.
        support: samples of each class; the sums of the rows where it is not given.
    """
    right, taken = matrix.diagonal(), matrix.sum(axis=0)
    samples = matrix.sum(axis=1) if support is None else support
    return [
        {
            "name": name,
            "precision": _share(right[number], taken[number]),
            "recall": _share(right[number], samples[number]),
            # 2PR / (P + R), written in counts: it is defined as soon as either of the two is.
            "f1": _share(2 * right[number], taken[number] + samples[number]),
            "support": int(samples[number]),
        }
        for number, name in enumerate(names)
    ]


def top_share(labels: np.ndarray, top_classes: np.ndarray) -> float | None:
    """Return the share of labeled samples whose label is among their best classes; None where none is labeled."""
    known = labels >= 0
    return _share((top_classes == labels[:, None]).any(axis=1)[known].sum(), known.sum())


def threshold_figures(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray, names: Sequence[str], threshold: float
) -> dict[str, Any]:
    """Return the figures where a sample counts as decided from a score of ``threshold`` on.

    Returns:
        ``threshold``; ``coverage``, the share of samples that are decided; ``decided``, how many; ``accuracy`` and
        ``confusion`` of the decided ones; ``per_class``, whose recall and support count the undecided ones as well.
    """
    decided = scores >= threshold
    classes = len(names)
    matrix = confusion_matrix(labels[decided], predicted[decided], classes)
    support = np.bincount(labels[labels >= 0], minlength=classes)
    return {
        "threshold": threshold,
        "coverage": _share(decided.sum(), len(scores)),
        "decided": int(decided.sum()),
        "accuracy": _share(matrix.trace(), matrix.sum()),
        "per_class": class_figures(matrix, names, support),
        "confusion": matrix.tolist(),
    }


def class_curves(scores: np.ndarray, is_of_class: np.ndarray, points: int) -> dict[str, Any]:
    """Return how well the score of one class tells its samples from all others.

    A sample is taken for the class where its score is at least a threshold; the thresholds are the scores themselves.

    Args:
        scores: (N) of the class; NaN counts as 0.
        is_of_class: (N) bool.
        points: how many are returned at most; average precision and area are those of all.

    Returns:
        ``thresholds``, falling; ``precision``, ``recall``, ``false_positive`` and ``true_positive`` (rates) at each;
        ``average_precision``, the mean of the precisions weighted by the gain in recall; ``area`` under true over
        false positive rate. None where there is no sample of the class, or no other.
    """
    scores = np.nan_to_num(scores, nan=0.0)
    order = np.argsort(-scores, kind="stable")
    falling, hits = scores[order], is_of_class[order]
    last = np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1) if len(falling) else np.zeros(0, np.intp)
    found = np.cumsum(hits)[last] if len(falling) else np.zeros(0, np.int64)
    wrong = last + 1 - found
    positives, negatives = int(hits.sum()), int(len(hits) - hits.sum())
    precision = found / (last + 1)
    recall, false_rate = found / max(1, positives), wrong / max(1, negatives)
    gains = np.diff(recall, prepend=0.0)
    area = float(np.sum(np.diff(false_rate, prepend=0.0) * (recall + np.append(0.0, recall[:-1])) / 2))
    shown = np.unique(np.linspace(0, len(last) - 1, min(points, len(last))).round().astype(int))
    return {
        "thresholds": falling[last][shown].astype(float).tolist(),
        "precision": precision[shown].tolist(),
        "recall": recall[shown].tolist(),
        "false_positive": false_rate[shown].tolist(),
        "true_positive": recall[shown].tolist(),
        "average_precision": float(np.sum(gains * precision)) if positives else None,
        "area": area if positives and negatives else None,
    }


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None
