"""Metrics of multi-label classification: average precision, and F1, precision and recall at a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.classification_metrics import class_curves
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.metric_values import check_same_shape, share_of

__all__ = ["MultiLabelMetric"]


class MultiLabelMetric(Metric):
    """Mean average precision, macro and micro F1, and the figures of each class.

    It reads the output ``output``, (N, classes) probabilities (not logits), and the target ``y``, (N, classes): 1 has
    the label, 0 has it not, NaN unknown, which is left out. Its state holds 5 bytes for each probability in float32:
    the ranks of all of them decide.

    Args:
        class_names: by class number.
        threshold: a label is predicted where its probability is at least this.
    """

    def __init__(self, class_names: Sequence[str], threshold: float = 0.5) -> None:
        self._names = list(class_names)
        self._threshold = threshold
        self._probabilities: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Raises:
            UsageError: where shapes differ, values are no probabilities, or targets are no labels.
        """
        probabilities, target = np.asarray(outputs["output"]), np.asarray(targets["y"], np.float64)
        check_same_shape(probabilities, target)
        self._check_classes(probabilities)
        beyond = (probabilities < 0) | (probabilities > 1)
        if beyond.any():
            raise UsageError(
                "Multi-label metrics take probabilities, from 0 to 1.",
                received=f"{probabilities[beyond][0]}",
                advice="Apply a sigmoid to the logits first.",
            )
        unknown = np.isnan(target)
        labels = np.where(unknown, -1, target)
        odd = ~np.isin(labels, (-1, 0, 1)) | ((labels == -1) & ~unknown)
        if odd.any():
            raise UsageError("A label is 1, 0, or NaN where it is not known.", received=f"{target[odd][0]}")
        self._probabilities.append(np.array(probabilities))
        self._labels.append(labels.astype(np.int8))

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``mean_ap``, over the classes with positives; ``f1_macro``, over the same; ``f1_micro``, of all labels
            together; ``classes`` (``class``, ``ap``, ``precision``, ``recall``, ``f1``, None where one is not defined,
            ``positives``, ``predicted``); ``counts``: ``samples``, ``labels`` that are known, ``unknown``, and
            ``not_finite``, known labels whose probability is NaN, which counts as 0. Empty before the first sample.
        """
        probabilities, labels = self._arrays()
        if not len(labels):
            return {}
        known = labels >= 0
        taken = known & (probabilities >= self._threshold)
        right, predicted = (taken & (labels == 1)).sum(axis=0), taken.sum(axis=0)
        positives = (labels == 1).sum(axis=0)
        classes = [
            {
                "class": name,
                "ap": self._average_precision(number, probabilities, labels),
                "precision": share_of(right[number], predicted[number]),
                "recall": share_of(right[number], positives[number]),
                # 2PR / (P + R), written in counts: it is defined as soon as either of the two is.
                "f1": share_of(2 * right[number], predicted[number] + positives[number]),
                "positives": int(positives[number]),
                "predicted": int(predicted[number]),
            }
            for number, name in enumerate(self._names)
        ]
        return {
            "mean_ap": _mean([each["ap"] for each in classes if each["positives"]]),
            "f1_macro": _mean([each["f1"] for each in classes if each["positives"]]),
            "f1_micro": share_of(2 * right.sum(), predicted.sum() + positives.sum()),
            "classes": classes,
            "counts": {
                "samples": len(labels),
                "labels": int(known.sum()),
                "unknown": int((~known).sum()),
                "not_finite": int((known & np.isnan(probabilities)).sum()),
            },
        }

    def state(self) -> dict[str, np.ndarray]:
        """Return the probabilities, and the labels (int8, -1 unknown), (N, classes) each."""
        probabilities, labels = self._arrays()
        return {"probabilities": probabilities, "labels": labels}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the samples of another metric."""
        probabilities, labels = np.asarray(state["probabilities"]), np.asarray(state["labels"], np.int8)
        check_same_shape(probabilities, labels)
        self._check_classes(probabilities)
        self._probabilities.append(probabilities)
        self._labels.append(labels)

    def _average_precision(self, number: int, probabilities: np.ndarray, labels: np.ndarray) -> float | None:
        known = labels[:, number] >= 0
        return class_curves(probabilities[known, number], labels[known, number] == 1, 0)["average_precision"]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._labels:
            shape = (0, len(self._names))
            return np.zeros(shape, np.float32), np.zeros(shape, np.int8)
        return np.concatenate(self._probabilities), np.concatenate(self._labels)

    def _check_classes(self, values: np.ndarray) -> None:
        if values.ndim != 2 or values.shape[1] != len(self._names):
            raise UsageError(
                f"Probabilities of shape {values.shape} are not one for each of {len(self._names)} classes.",
                advice="Give (samples, classes).",
            )


def _mean(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if known else None
