"""Classification: one class for each sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.standalone_prediction import decided_class
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, SplitData, Task, TaskContext, chosen_thresholds, raw_outputs
from ziggurat.tasks.baselines import Baseline, majority_class, split_rows, table_classification_baselines
from ziggurat.tasks.classification_metrics import ConfusionMetric
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.threshold_choice import ThresholdSamples

__all__ = ["CLASSIFICATION"]

_KINDS: Final = ("image-classification", "text-classification", "table")
_MOST_CLASSES: Final = 1000
_MOST_SCORES: Final = 20_000_000
"""More probabilities than these are not kept, only the best of each sample."""


class Classification(Task):
    """Target: a class number. Output of the network: a score for each class; the program makes probabilities of it."""

    name = "classification"
    title = "classification"
    primary_metric = PrimaryMetric("accuracy", "max", "accuracy")
    order = 10
    outputs = ("probabilities",)
    ranked_by = "label_scores"
    takes_class_lists = True

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no class for each sample; empty where it has."""
        if schema.kind not in _KINDS:
            return f"Classification needs one class for each sample; this dataset is of kind {schema.kind}."
        if not schema.class_names:
            return "Classification needs a target with classes; this dataset has none."
        return ""

    def why_not_mixed(self, schema: Schema) -> str:
        """Return that only images can be mixed; empty for images."""
        if schema.kind == "image-classification":
            return ""
        return f"Mixup and CutMix mix the pixels of two images; this dataset is of kind {schema.kind}."

    def why_not_oversampled(self, schema: Schema) -> str:
        """Return an empty string: every sample has a class."""
        return ""

    def classes_of(self, label: Any) -> Collection[int]:
        """Return the one class."""
        return (int(label),)

    def target(self, context: TaskContext) -> ArraySpec:
        """Return the class number."""
        return ArraySpec((), "int64", len(context.class_names))

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return the class number."""
        return ArraySpec((), "int64", classes)

    def encode(self, context: TaskContext, label: Any, key: Any) -> Any:
        """Return the class number as it is.

        Raises:
            DatapointError: where there is none.
        """
        if label is None:
            raise DatapointError(key, "it has no class.")
        return label

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return accuracy, confusion matrix, and precision and recall of each class."""
        return [ConfusionMetric(context.class_names)]

    def validation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return none: the program itself computes the error, and the accuracy that the network reports."""
        return []

    def baselines(self, context: TaskContext, train: SplitData, val: SplitData) -> list[Baseline]:
        """Return what the most frequent class reaches; of tables also a linear model and gradient boosting."""
        if context.schema.parts[0] != "row":
            return [majority_class(*(_numbers(split.labels()) for split in (train, val)))]
        rows = (split_rows(split) for split in (train, val))
        (train_x, train_y), (val_x, val_y) = ((x[y >= 0], y[y >= 0]) for x, y in rows)
        return table_classification_baselines(train_x, train_y, val_x, val_y, context.preprocessing.categories)

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return label, best classes, the decision of an operating point, and all probabilities if not too many."""
        classes = len(context.class_names)
        top = min(top, classes)
        arrays = {
            "labels": np.zeros(samples, np.int32),
            "label_scores": np.zeros(samples, np.float32),
            "predicted": np.zeros(samples, np.int32),
            "scores": np.zeros(samples, np.float32),
            "top_classes": np.zeros((samples, top), np.int32),
            "top_scores": np.zeros((samples, top), np.float32),
        }
        if context.thresholds:
            arrays["decided"] = np.zeros(samples, np.int32)
        if classes <= _MOST_CLASSES and samples * classes <= _MOST_SCORES:
            arrays["class_scores"] = np.zeros((samples, classes), np.float32, order="F")
        return arrays

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch; ``y`` holds class numbers, -1 where they are not known."""
        labels, found = targets["y"], np.asarray(outputs["probabilities"])
        if found.ndim != 2 or found.shape[1] != len(context.class_names):
            raise DataError(
                "A network that classifies gives a probability for each class of its data.",
                received=f"shape {found.shape} for {len(context.class_names)} classes",
            )
        found = found.astype(np.float32, copy=False)
        ranks = np.argsort(-found, axis=1, kind="stable")
        known = np.take_along_axis(found, np.maximum(labels, 0)[:, None], axis=1)[:, 0]
        names = context.class_names
        decisions = [decided_class(row, context.thresholds, names) for row in found] if context.thresholds else []
        return {
            "decided": np.array([-1 if each["number"] is None else each["number"] for each in decisions], np.int32),
            "labels": labels,
            "label_scores": np.where(labels >= 0, known, np.float32("nan")),
            "predicted": ranks[:, 0],
            "scores": np.take_along_axis(found, ranks[:, :1], axis=1)[:, 0],
            "top_classes": ranks,
            "top_scores": np.take_along_axis(found, ranks, axis=1),
            "class_scores": found,
        }

    def summary_metrics(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return nothing: the results of each sample hold all of it, for every threshold."""
        return {}

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return whether the network classifies, and the names of the classes."""
        return {"classifier": is_known, "classes": list(context.class_names)}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there is a probability for each class."""
        return {"form": "classes", "output": "probabilities", **chosen_thresholds(context)}

    def threshold_names(self, class_names: Sequence[str]) -> tuple[str, ...]:
        """Return the second of two classes, from whose probability on it is predicted; of more ``confidence``."""
        return (class_names[1],) if len(class_names) == 2 else ("confidence",) if len(class_names) > 2 else ()

    def has_thresholds(self, summary: Mapping[str, Any]) -> bool:
        """Return whether the network gives scores of classes; one that compares images does not."""
        return bool(summary.get("classifier", True))

    def threshold_samples(
        self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Sequence[ThresholdSamples]:
        """Return the probabilities of the second of two classes; none for more classes, of which one is confident."""
        scores = arrays.get("class_scores")
        if scores is None or scores.shape[1] != 2:
            return ()
        labels = np.asarray(arrays["labels"])
        known = labels >= 0
        is_right = labels[known] == 1
        return [ThresholdSamples(np.asarray(scores[known, 1]), is_right, int(is_right.sum()))]

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``classes``: class, number and probability, best first; ``decision`` of an operating point."""
        if "probabilities" not in outputs:
            return raw_outputs(outputs)
        row = outputs["probabilities"]
        best = np.argsort(-row, kind="stable")[:top]
        found: dict[str, Any] = {
            "classes": [
                {"class": context.class_names[number], "number": int(number), "probability": float(row[number])}
                for number in best
            ]
        }
        if context.thresholds:
            found["decision"] = decided_class(row, context.thresholds, context.class_names)
        return found

    def sample_label(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> int:
        """Return the class number."""
        return int(arrays[1])

    def sample_prediction(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return ``class`` and ``score``; the score is None where it is not finite."""
        row = outputs["probabilities"]
        number = int(np.argmax(row))
        score = float(row[number])
        return {"class": number, "score": round(score, 4) if np.isfinite(score) else None}


def _numbers(labels: Iterable[Any]) -> np.ndarray:
    """Return class numbers, -1 for a class that is not known."""
    return np.array([-1 if label is None else label for label in labels], np.int64)


CLASSIFICATION: Final = Classification()
