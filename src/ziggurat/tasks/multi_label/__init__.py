"""Multi-label classification: any number of labels for each sample."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, Task, TaskContext, chosen_thresholds, raw_outputs
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.multilabel_metrics import MultiLabelMetric
from ziggurat.tasks.report import SHARE, MetricInfo
from ziggurat.tasks.threshold_choice import ThresholdSamples

__all__ = ["MULTI_LABEL"]

_THRESHOLD: Final = 0.5


class MultiLabel(Task):
    """Target: (classes) float32, 1 for each label that a sample has, else 0. Output: (N, classes) logits."""

    name = "multi-label"
    title = "multi-label classification"
    primary_metric = PrimaryMetric("mean_ap", "max", "mean AP")
    default_threshold = _THRESHOLD
    order = 10
    metric_info = {
        "mean_ap": MetricInfo("Mean AP", SHARE, help="Average precision of each label; mean."),
        "f1_macro": MetricInfo("Macro F1", SHARE, help="Mean F1 of the labels at the threshold; each counts the same."),
        "f1_micro": MetricInfo("Micro F1", SHARE, help="F1 of all labels together at the threshold."),
        "classes": MetricInfo("Labels", mode=""),
        "class": MetricInfo("Label", mode=""),
        "ap": MetricInfo("AP", SHARE),
        "precision": MetricInfo("Precision", SHARE),
        "recall": MetricInfo("Recall", SHARE),
        "f1": MetricInfo("F1", SHARE),
        "positives": MetricInfo("Samples", mode=""),
        "predicted": MetricInfo("Predicted", mode=""),
    }

    def accepts(self, schema: Schema) -> str:
        """Return why the samples of a dataset have no labels to learn; empty where they have."""
        if schema.kind != "image-regression":
            return (
                f"Multi-label classification needs images with several labels; this dataset is of kind {schema.kind}."
            )
        if not schema.class_names:
            return "Multi-label classification needs names of the labels; this dataset has measured values."
        return ""

    def target(self, context: TaskContext) -> ArraySpec:
        """Return a 0 or 1 for each label."""
        count = len(context.class_names)
        return ArraySpec((count,), "float32", count)

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return a 0 or 1 for each label."""
        return ArraySpec((classes,), "float32", classes)

    def why_not_oversampled(self, schema: Schema) -> str:
        """Return an empty string: labels are counted as classes are."""
        return ""

    def classes_of(self, label: Any) -> Collection[int]:
        """Return the labels that a sample has."""
        return np.flatnonzero(np.atleast_1d(np.asarray(label if label is not None else [], np.float64)) > 0).tolist()

    def encode(self, context: TaskContext, label: Any, key: Any) -> np.ndarray:
        """Return a 0 or 1 for each label of one sample.

        Raises:
            DatapointError: where there are others.
        """
        values = np.atleast_1d(np.asarray(label, np.float32)) if label is not None else np.zeros(0, np.float32)
        if values.shape != (len(context.class_names),) or not np.isin(values, (0, 1)).all():
            raise DatapointError(key, f"its label is no list of {len(context.class_names)} numbers 0 or 1.")
        return values

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return mean average precision, F1, and precision and recall of each label."""
        return [_FromLogits(context.class_names, _THRESHOLD)]

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return labels, probabilities, and the share of labels that are right."""
        count = len(context.class_names)
        return {
            "targets": np.zeros((samples, count), np.int8),
            "predicted": np.zeros((samples, count), np.float32),
            "score": np.zeros(samples, np.float32),
        }

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch; the score is the share of right labels, less the mean squared difference."""
        known, found = np.asarray(targets["y"]), _probabilities(outputs["output"], len(context.class_names))
        right = ((found >= _THRESHOLD) == (known > 0)).mean(axis=1)
        # Of samples with equally many right labels, the one that is surer of its wrong ones is worse.
        return {
            "targets": known,
            "predicted": found,
            "score": right - np.square(found - known).mean(axis=1) / len(context.class_names),
        }

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return the names of the labels."""
        return {"classifier": False, "classes": list(context.class_names), "threshold": _THRESHOLD}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there is a logit for each label, and the threshold."""
        return {"form": "labels", "output": "output", "threshold": _THRESHOLD, **chosen_thresholds(context)}

    def threshold_names(self, class_names: Sequence[str]) -> tuple[str, ...]:
        """Return every label."""
        return tuple(class_names)

    def threshold_samples(
        self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Sequence[ThresholdSamples]:
        """Return the probabilities of each label."""
        if "predicted" not in arrays:
            return ()
        scores, known = np.asarray(arrays["predicted"]), np.asarray(arrays["targets"]) > 0
        return [
            ThresholdSamples(scores[:, number], known[:, number], int(known[:, number].sum()))
            for number in range(known.shape[1])
        ]

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``labels``: class, number, probability, and whether it is predicted; the likeliest first."""
        names = context.class_names
        if "output" not in outputs or np.shape(outputs["output"]) != (len(names),):
            return raw_outputs(outputs)
        found = _probabilities(np.asarray(outputs["output"])[None], len(names))[0]
        thresholds = context.thresholds or (_THRESHOLD,) * len(names)
        order = np.argsort(-found, kind="stable").tolist()
        return {
            "labels": [
                {
                    "class": names[number],
                    "number": number,
                    "probability": float(found[number]),
                    "predicted": bool(found[number] >= thresholds[number]),
                }
                for place, number in enumerate(order)
                if place < top or found[number] >= thresholds[number]
            ]
        }


class _FromLogits(MultiLabelMetric):
    """The metrics of the probabilities that logits stand for."""

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        super().update({"output": _probabilities(outputs["output"], len(self._names))}, targets)


def _probabilities(logits: Any, classes: int) -> np.ndarray:
    found = np.asarray(logits, np.float64)
    if found.ndim != 2 or found.shape[1] != classes:
        raise DataError(
            "A network for several labels gives a logit for each label of its data.",
            received=f"shape {found.shape} for {classes} labels",
            advice="Give its last layer as many units, without a sigmoid.",
        )
    return 1 / (1 + np.exp(-np.clip(found, -500, 500)))


MULTI_LABEL: Final = MultiLabel()
