"""Metrics of classifiers: confusion matrix, precision and recall, curves, calibration, and a test for two models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.metric import Metric

__all__ = [
    "MOST_CONFUSION_CLASSES",
    "NO_QUALITY",
    "ConfusionMetric",
    "accuracy_interval",
    "calibration_error",
    "class_curves",
    "class_figures",
    "confusion_matrix",
    "log_loss",
    "macro_f1",
    "mcnemar_p_value",
    "paired_difference_interval",
    "quality_measures",
    "threshold_figures",
    "top_share",
]

NO_QUALITY: Final[Mapping[str, Any]] = {
    "labeled": 0,
    "correct": 0,
    "accuracy_interval": None,
    "macro_f1": None,
    "top3": None,
    "log_loss": None,
    "calibration_error": None,
}
"""Values of ``quality_measures`` where no label is known."""

MOST_CONFUSION_CLASSES: Final = 1000
"""Of more classes no confusion matrix is given: a hundred million numbers as lists take seconds and gigabytes."""

_Z_95: Final = 1.959963984540054
_BINS: Final = 15
_MOST_EXACT: Final = 1000
_LEAST_SCORE: Final = float(np.finfo(np.float32).eps)
_TOP: Final = 3
_MANY_CLASSES: Final = 5
_MOST_CONFUSED: Final = 20


class ConfusionMetric(Metric):
    """Accuracy, top-5 accuracy, confusion matrix, and precision and recall of each class.

    It reads the output ``probabilities``, (N, classes), and the target ``y``, (N) class numbers; samples whose
    label is -1 are not counted.

    Args:
        class_names: by class number.
    """

    def __init__(self, class_names: Sequence[str]) -> None:
        self._names = list(class_names)
        self._matrix = np.zeros((len(self._names), len(self._names)), np.int64)
        self._among_five = 0

    @property
    def samples(self) -> int:
        """Labeled samples so far."""
        return int(self._matrix.sum())

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch; of equal probabilities, the class with the smaller number counts as predicted."""
        labels = np.asarray(targets["y"])
        ranks = np.argsort(-np.asarray(outputs["probabilities"]), axis=1, kind="stable")[:, :_MANY_CLASSES]
        known = labels >= 0
        np.add.at(self._matrix, (labels[known], ranks[known, 0]), 1)  # in place: a matrix per batch costs classes²
        self._among_five += int((ranks == labels[:, None]).any(axis=1).sum())

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``accuracy``; ``top_5``, with more than five classes; ``confusion`` (row: label, column: prediction), with
            more than 1,000 classes instead of it ``confused`` (``class``, ``predicted`` and ``samples`` of the 20 most
            frequent errors); ``classes`` (``class``, ``samples``, ``predicted``, ``precision`` and ``recall``, None
            where one is not defined). Empty before the first labeled sample.
        """
        count = self.samples
        if not count:
            return {}
        values: dict[str, Any] = {"accuracy": float(self._matrix.trace() / count)}
        if len(self._names) > _MANY_CLASSES:
            values["top_5"] = self._among_five / count
        if len(self._names) > MOST_CONFUSION_CLASSES:
            values["confused"] = self._most_confused()
        else:
            values["confusion"] = self._matrix.tolist()
        predicted = self._matrix.sum(axis=0).tolist()
        values["classes"] = [
            {
                "class": each["name"],
                "samples": each["support"],
                "predicted": taken,
                "precision": each["precision"],
                "recall": each["recall"],
            }
            for each, taken in zip(class_figures(self._matrix, self._names), predicted, strict=True)
        ]
        return values

    def state(self) -> dict[str, np.ndarray]:
        """Return the counts."""
        return {"matrix": self._matrix.copy(), "among_five": np.asarray(self._among_five)}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the counts of other samples."""
        if state["matrix"].shape != self._matrix.shape:
            raise UsageError(
                "Only metrics with the same classes can be merged.",
                received=f"{len(state['matrix'])} and {len(self._names)} classes",
            )
        self._matrix += state["matrix"]
        self._among_five += int(state["among_five"])

    def _most_confused(self) -> list[dict[str, Any]]:
        """Return the most frequent errors, of equally frequent ones those of the classes with smaller numbers."""
        labels, predicted = np.nonzero(self._matrix)
        wrong = labels != predicted
        labels, predicted = labels[wrong], predicted[wrong]
        samples = self._matrix[labels, predicted]
        return [
            {
                "class": self._names[labels[place]],
                "predicted": self._names[predicted[place]],
                "samples": int(samples[place]),
            }
            for place in np.argsort(-samples, kind="stable")[:_MOST_CONFUSED]
        ]


def quality_measures(
    labels: np.ndarray,
    predicted: np.ndarray,
    scores: np.ndarray,
    label_scores: np.ndarray,
    top_classes: np.ndarray,
    per_class: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the measures of the labeled samples, under the names of ``NO_QUALITY``.

    Args:
        labels: (N) class numbers; -1 where unknown.
        predicted: (N) class numbers.
        scores: (N) probability of the predicted class.
        label_scores: (N) probability of the label.
        top_classes: (N, K) the K best classes of each sample.
        per_class: ``f1`` and ``support`` of each class.

    Returns:
        ``labeled`` and ``correct`` (samples), ``accuracy_interval`` (low and high end), ``macro_f1``, ``top3`` (None
        with three classes or fewer), ``log_loss`` and ``calibration_error``.
    """
    known = labels >= 0
    if not known.any():
        return dict(NO_QUALITY)
    right = labels[known] == predicted[known]
    labeled, correct = len(right), int(right.sum())
    has_three = top_classes.shape[1] >= _TOP and len(per_class) > _TOP
    hits = (top_classes[:, :_TOP] == labels[:, None]).any(axis=1) if has_three else None
    return {
        "labeled": labeled,
        "correct": correct,
        "accuracy_interval": accuracy_interval(correct, labeled),
        "macro_f1": macro_f1(per_class),
        "top3": None if hits is None else float(hits[known].mean()),
        "log_loss": log_loss(label_scores[known]),
        "calibration_error": calibration_error(scores[known], right),
    }


def accuracy_interval(correct: int, count: int) -> tuple[float, float] | None:
    """Return the 95 % interval of an accuracy (Wilson, 1927), which also holds for few samples and near 0 or 1."""
    if not count:
        return None
    share, square = correct / count, _Z_95**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z_95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def macro_f1(per_class: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean F1 of the classes that have samples; None where none has."""
    found = [each["f1"] for each in per_class if each["support"] and each["f1"] is not None]
    return sum(found) / len(found) if found else None


def log_loss(label_scores: np.ndarray) -> float | None:
    """Return the mean of -log p(label); a probability of 0 counts as the smallest step of float32."""
    if not len(label_scores):
        return None
    known = np.clip(np.nan_to_num(label_scores.astype(np.float64), nan=0.0), _LEAST_SCORE, 1.0)
    return float(-np.log(known).mean())


def calibration_error(scores: np.ndarray, is_right: np.ndarray) -> float | None:
    """Return the expected calibration error: |accuracy - mean score| over 15 equal bins, weighted by their samples.

    Args:
        scores: (N) probability of the predicted class.
        is_right: (N) whether the prediction is correct.
    """
    if not len(scores):
        return None
    scores = np.nan_to_num(scores.astype(np.float64), nan=0.0)
    bins = np.clip((scores * _BINS).astype(np.int64), 0, _BINS - 1)
    gaps = np.bincount(bins, is_right.astype(np.float64) - scores, _BINS)
    return float(np.abs(gaps).sum() / len(scores))


def mcnemar_p_value(fixed: int, broken: int) -> float:
    """Return the two-sided p-value of McNemar's test: two equally good models differ at least as much by chance.

    It is the exact binomial test up to 1,000 samples that changed, then chi-squared with continuity correction.

    Args:
        fixed: samples that only the second model predicts correctly.
        broken: samples that only the first one predicts correctly.
    """
    count = fixed + broken
    if not count:
        return 1.0
    if count > _MOST_EXACT:
        return math.erfc(math.sqrt(max(0, abs(fixed - broken) - 1) ** 2 / count / 2))
    tail = sum(math.comb(count, number) for number in range(min(fixed, broken) + 1))
    return min(1.0, 2 * tail / 2**count)


def paired_difference_interval(
    both_right: int, first_right: int, second_right: int, both_wrong: int
) -> tuple[float, float] | None:
    """Return the 95 % interval of the difference of two accuracies on the same samples, the second less the first.

    It is method 10 of Newcombe, "Improved confidence intervals for the difference between binomial proportions based on
    paired data" (1998): Wilson's intervals of both accuracies, combined with the correlation of the outcomes, which is
    corrected for continuity. It also holds for few samples and where no outcome changed.

    Args:
        both_right: samples that both models predict correctly.
        first_right: samples that only the first one predicts correctly.
        second_right: samples that only the second one predicts correctly.
        both_wrong: samples that neither predicts correctly.

    Returns:
        The ends; None without samples.
    """
    count = both_right + first_right + second_right + both_wrong
    first, second = both_right + first_right, both_right + second_right
    first_ends, second_ends = accuracy_interval(first, count), accuracy_interval(second, count)
    if first_ends is None or second_ends is None:
        return None
    spread = first * (count - first) * second * (count - second)
    product = both_right * both_wrong - first_right * second_right
    corrected = max(product - count / 2, 0.0) if product > 0 else float(product)
    correlation = corrected / math.sqrt(spread) if spread else 0.0
    before, after = first / count, second / count

    def reach(of_second: float, of_first: float) -> float:
        return math.sqrt(max(0.0, of_second**2 - 2 * correlation * of_second * of_first + of_first**2))

    low = after - before - reach(after - second_ends[0], first_ends[1] - before)
    high = after - before + reach(second_ends[1] - after, before - first_ends[0])
    return max(-1.0, low), min(1.0, high)


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Return the confusion matrix: (classes, classes) int64, a row for each label, a column for each prediction.

    Args:
        labels: (N) class numbers; samples with -1 are not counted.
        predicted: (N) class numbers.
        classes: number of classes.
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
    """Return the share of labeled samples whose label is among the top classes; None where none is labeled."""
    known = labels >= 0
    return _share((top_classes == labels[:, None]).any(axis=1)[known].sum(), known.sum())


def threshold_figures(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray, names: Sequence[str], threshold: float
) -> dict[str, Any]:
    """Return the metrics where a sample counts as decided if its score is at least ``threshold``.

    Returns:
        ``threshold``; ``coverage``, the share of decided samples; ``decided``, their number; ``accuracy`` and
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
    """Return the precision-recall and ROC curves of one class against all others.

    A sample is predicted as the class where its score is at least a threshold; the thresholds are the scores.

    Args:
        scores: (N) of the class; NaN counts as 0.
        is_of_class: (N) bool.
        points: number of points to return at most; average precision and area are computed from all points.

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
