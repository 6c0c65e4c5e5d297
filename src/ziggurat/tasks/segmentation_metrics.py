"""Metrics of segmentation: intersection over union and accuracy of pixels, per class, per sample and over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.standalone_prediction import second_probability
from ziggurat.errors import UsageError
from ziggurat.tasks.classification_metrics import MOST_CONFUSION_CLASSES
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.metric_values import add_sums, check_same_shape, share_of

__all__ = [
    "PROBABILITY_STEPS",
    "SegmentationMetric",
    "ThresholdCounts",
    "class_masks",
    "constant_class_baseline",
    "sample_iou",
]

PROBABILITY_STEPS: Final = np.arange(1001) / 1000
"""Probabilities, rising: a pixel is counted at the largest one that its own reaches, so that thresholds with three
decimals have exact figures."""


class SegmentationMetric(Metric):
    """Mean IoU, pixel accuracy, confusion matrix of pixels, and IoU, precision and recall of each class.

    It reads the output ``output``, (N, H, W, classes) scores or (N, H, W) class numbers, and the target ``y``,
    (N, H, W, 1) or (N, H, W) class numbers. IoU = TP / (TP + FP + FN) over the pixels of all samples together, as in
    Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective" (IJCV 2015).

    Args:
        class_names: by class number.
        ignore_class: pixels with this target are not counted, such as 255 for "void". Where it is the number of a
            class, this class has no IoU, and is no part of the mean.
    """

    def __init__(self, class_names: Sequence[str], ignore_class: int | None = None) -> None:
        self._names = list(class_names)
        self._ignored = ignore_class
        classes = len(self._names)
        self._sums = {"matrix": np.zeros((classes, classes), np.int64), "outside": np.zeros((), np.int64)}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch; of equal scores, the class with the smaller number counts as predicted.

        Raises:
            UsageError: where sizes differ, or a prediction is no number of a class.
        """
        classes = len(self._names)
        predicted, target = class_masks(outputs["output"], classes), _target_masks(targets["y"])
        check_same_shape(predicted, target)
        counted, outside = _counted(target, classes, self._ignored)
        self._sums["outside"] += int(outside.sum())
        places = target[counted] * classes + predicted[counted]
        self._sums["matrix"] += np.bincount(places, minlength=classes * classes).reshape(classes, classes)

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``mean_iou``, over the classes that are in the targets or the predictions; ``pixel_accuracy``;
            ``confusion`` in pixels (row: target, column: prediction), up to 1,000 classes; ``classes`` (``class``,
            ``iou``, ``precision``, ``recall``, None where one is not defined, ``pixels`` in the targets and
            ``predicted`` pixels); ``counts``: ``pixels``, and ``outside``, those whose target is neither the number
            of a class nor ignored. Only ``counts`` where no pixel is counted; empty before the first batch.
        """
        matrix = self._sums["matrix"]
        counts = {"pixels": int(matrix.sum()), "outside": int(self._sums["outside"])}
        if not counts["pixels"]:
            return {"counts": counts} if counts["outside"] else {}
        right, pixels, predicted = matrix.diagonal(), matrix.sum(axis=1), matrix.sum(axis=0)
        union = pixels + predicted - right
        scored = _scored(union, self._ignored)
        values: dict[str, Any] = {
            "mean_iou": float(np.mean(right[scored] / union[scored])) if scored.any() else None,
            "pixel_accuracy": float(right.sum() / counts["pixels"]),
        }
        if len(self._names) <= MOST_CONFUSION_CLASSES:
            values["confusion"] = matrix.tolist()
        values["classes"] = [
            {
                "class": name,
                "iou": share_of(right[number], union[number]) if scored[number] else None,
                "precision": share_of(right[number], predicted[number]),
                "recall": share_of(right[number], pixels[number]),
                "pixels": int(pixels[number]),
                "predicted": int(predicted[number]),
            }
            for number, name in enumerate(self._names)
        ]
        return {**values, "counts": counts}

    def state(self) -> dict[str, np.ndarray]:
        """Return the counts of pixels."""
        return {name: value.copy() for name, value in self._sums.items()}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the counts of other samples."""
        add_sums(self._sums, state)


class ThresholdCounts(Metric):
    """Pixels of each of two classes by the probability of the second one, by which its threshold is chosen.

    It reads the output ``output``, (N, H, W, 2) logits, and the target ``y``; other outputs are left out.

    Args:
        ignore_class: pixels with this target are not counted.
    """

    def __init__(self, ignore_class: int | None = None) -> None:
        self._ignored = ignore_class
        self._sums = {"counts": np.zeros((2, len(PROBABILITY_STEPS)), np.int64)}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch."""
        scores = np.asarray(outputs["output"])
        if scores.ndim != 4 or scores.shape[3] != 2 or scores.dtype.kind != "f":
            return
        target = _target_masks(targets["y"])
        check_same_shape(scores[..., 0], target)
        counted = _counted(target, 2, self._ignored)[0]
        found = second_probability(scores[counted])
        counted_classes, found = target[counted][np.isfinite(found)], found[np.isfinite(found)]
        places = np.searchsorted(PROBABILITY_STEPS, found, side="right") - 1
        steps = len(PROBABILITY_STEPS)
        self._sums["counts"] += np.bincount(counted_classes * steps + places, minlength=2 * steps).reshape(2, steps)

    def compute(self) -> dict[str, Any]:
        """Return ``threshold_counts``, pixels of both classes for each of ``PROBABILITY_STEPS``; empty without any."""
        counts = self._sums["counts"]
        return {"threshold_counts": counts.tolist()} if counts.any() else {}

    def state(self) -> dict[str, np.ndarray]:
        """Return the counts of pixels."""
        return {name: value.copy() for name, value in self._sums.items()}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the counts of other samples."""
        add_sums(self._sums, state)


def class_masks(output: np.ndarray, classes: int) -> np.ndarray:
    """Return the predicted class of each pixel, (N, H, W) int64.

    Args:
        output: (N, H, W, classes) scores; or class numbers, (N, H, W) or, as integers, (N, H, W, 1).
        classes: number of classes.

    Raises:
        UsageError: where it is none of these, or a number is not that of a class.
    """
    output = np.asarray(output)
    if output.ndim == 4 and output.shape[3] == 1 and output.dtype.kind in "iu":
        output = output[..., 0]
    if output.ndim == 4 and output.shape[3] == classes:
        return output.argmax(axis=3)
    if output.ndim != 3:
        raise UsageError(
            f"The output has shape {output.shape}, neither a score for each of {classes} classes and "
            "each pixel nor a class number for each.",
            advice="Give (samples, height, width, classes) or (samples, height, width).",
        )
    numbers = _whole_numbers(output)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < classes:
        raise UsageError(
            f"Predicted class numbers are from {numbers.min()} to {numbers.max()}, not from 0 to {classes - 1}.",
            advice="Let the network have as many classes as the dataset.",
        )
    return numbers


def sample_iou(
    predicted: np.ndarray, target: np.ndarray, classes: int, ignore: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean IoU and pixel accuracy of each sample: two arrays (N,) float64.

    Both are computed as ``SegmentationMetric`` does, over the pixels of one sample; NaN where none of them counts.

    Args:
        predicted: (N, H, W) class numbers, or scores (N, H, W, classes).
        target: (N, H, W) or (N, H, W, 1) class numbers.
        classes: number of classes.
        ignore: target of the pixels that are not counted.

    Raises:
        UsageError: where sizes differ, or a prediction is no number of a class.
    """
    predicted, target = class_masks(predicted, classes), _target_masks(target)
    check_same_shape(predicted, target)
    count = len(target)
    counted, _ = _counted(target, classes, ignore)
    first = np.broadcast_to((np.arange(count) * classes)[:, None, None], target.shape)[counted]
    target, predicted = target[counted], predicted[counted]

    def per_class(places: np.ndarray) -> np.ndarray:
        return np.bincount(places, minlength=count * classes).reshape(count, classes)

    pixels, taken = per_class(first + target), per_class(first + predicted)
    right = per_class((first + target)[target == predicted])
    union = pixels + taken - right
    scored = _scored(union, ignore)
    shares = np.where(scored, right / np.maximum(union, 1), 0.0)
    return _ratio(shares.sum(axis=1), scored.sum(axis=1)), _ratio(right.sum(axis=1), pixels.sum(axis=1))


def constant_class_baseline(confusion: np.ndarray | Sequence[Sequence[int]]) -> float | None:
    """Return the mean IoU of predicting the most frequent class for every pixel; None where there is no pixel.

    The class gets its share of the pixels, every other class in the targets gets 0.

    Args:
        confusion: (classes, classes) pixels, a row for each target, as ``SegmentationMetric`` counts them.
    """
    pixels = np.asarray(confusion).sum(axis=1)
    total, present = int(pixels.sum()), int(np.count_nonzero(pixels))
    return float(pixels.max() / total / present) if total else None


def _target_masks(target: np.ndarray) -> np.ndarray:
    """Return targets as (N, H, W) int64; NaN becomes -1."""
    target = np.asarray(target)
    if target.ndim == 4 and target.shape[3] == 1:
        target = target[..., 0]
    if target.ndim != 3:
        raise UsageError(
            "The target of segmentation is a class number for each pixel.",
            received=f"shape {target.shape}",
            advice="Give (samples, height, width, 1) or (samples, height, width).",
        )
    return _whole_numbers(target)


def _whole_numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "iub":
        return values.astype(np.int64, copy=False)
    whole = np.nan_to_num(values, nan=-1.0, posinf=-1.0, neginf=-1.0)
    numbers = whole.astype(np.int64)
    if not np.array_equal(numbers, whole):
        raise UsageError(
            f"The class number {whole[numbers != whole][0]} is no whole number.",
            advice="Do not scale or interpolate masks: use the nearest pixel.",
        )
    return numbers


def _counted(target: np.ndarray, classes: int, ignored: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return which pixels count, and which hold a number that means nothing, both bool like ``target``."""
    inside = (target >= 0) & (target < classes)
    if ignored is None:
        return inside, ~inside
    kept = target != ignored
    return inside & kept, ~inside & kept


def _scored(union: np.ndarray, ignored: int | None) -> np.ndarray:
    """Return which classes, on the last axis of ``union``, have an IoU."""
    scored = union > 0
    if ignored is not None and 0 <= ignored < union.shape[-1]:
        scored[..., ignored] = False
    return scored


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
