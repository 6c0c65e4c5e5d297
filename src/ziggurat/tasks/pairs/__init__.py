"""Pairs: an embedding that is close for images of the same, and far apart for images of different things."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.pair_flow import PairsOfClasses
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, Task, TaskContext, as_color, raw_outputs
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.pair_metrics import PairMetric, nearest_neighbor_accuracy, pair_distances
from ziggurat.tasks.report import SHARE, MetricInfo, Report, ReportChart, ScoreInfo, spread_places

__all__ = ["PAIRS"]

_KINDS: Final = ("image-pairs", "image-classification")
_VALIDATED: Final = 5000
"""Samples at most whose nearest neighbors are looked for after each validation; an evaluation takes all."""
_BINS: Final = 24
_DRAWN: Final = 2000
_COLORED: Final = 8
"""Classes of the drawing with a color of their own: the largest; the others share one."""


class Pairs(Task):
    """Input: both images in the channels, (H, W, 2C). Target: 1 same, 0 different.

    Outputs: two embeddings (N, D). Of a dataset with classes, pairs are drawn: new ones in each epoch of training, half
    of the same class; each sample of an evaluation has one partner, always the same.
    """

    name = "pairs"
    title = "pairs of images"
    primary_metric = PrimaryMetric("accuracy", "max", "accuracy of pairs")
    order = 60
    outputs = ("output", "output_1")
    moves_with_image = ("image",)
    image_form = "image-pair"
    score = ScoreInfo("margin")
    metric_info = {
        "accuracy": MetricInfo("Accuracy of pairs", SHARE, help="At the best threshold of the distance."),
        "roc_auc": MetricInfo("ROC AUC", help="1: every same pair is closer than every different one. 0.5: chance."),
        "equal_error_rate": MetricInfo(
            "Equal error rate", SHARE, "min", "As many same pairs are rejected as different ones are accepted."
        ),
        "threshold": MetricInfo("Threshold", mode="", help="Distance below which two images count as the same."),
        "nearest_neighbor_accuracy": MetricInfo(
            "Nearest neighbor", SHARE, help="Samples whose nearest other sample is of the same class."
        ),
    }
    sample_pictures = ("image", "second")

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no pairs; empty where it has, or they can be drawn."""
        if schema.kind not in _KINDS:
            return f"Pairs need pairs of images, or images of classes; this dataset is of kind {schema.kind}."
        if schema.kind == "image-classification" and len(schema.class_names) < 2:
            return "Pairs are drawn from two classes or more; this dataset has fewer."
        return ""

    def rows(
        self, schema: Schema, flow: IndexedFlow, labels: Callable[[], Sequence[int]], *, shuffle: bool, seed: int
    ) -> IndexedFlow | None:
        """Return pairs that are drawn from classes; None where the dataset holds pairs."""
        if schema.kind == "image-pairs":
            return None
        return _KeyedPairs(flow, labels(), seed=seed, shuffle=shuffle)

    def input(self, context: TaskContext) -> ArraySpec:
        """Return the shape of both images in the channels."""
        height, width, channels = context.preprocessing.shape
        return ArraySpec((height, width, 2 * channels))

    def target(self, context: TaskContext) -> ArraySpec:
        """Return 1 or 0."""
        return ArraySpec((), "int64")

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return 1 or 0."""
        return ArraySpec((), "int64")

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return both images, fitted, whether they are the same, and the class of the first, -1 for none."""
        first, second, same, *label = point
        decode = context.preprocessing.decode
        number = label[0] if label else -1
        return [decode(first, key), decode(second, key), np.asarray(same, np.int64), np.asarray(number, np.int64)]

    def batch(
        self, context: TaskContext, arrays: Sequence[np.ndarray], finish: Callable[[np.ndarray], np.ndarray]
    ) -> list[np.ndarray]:
        """Return both images in the channels, the target, and the classes of the first images."""
        first, second, same, labels = arrays
        return [np.concatenate([finish(first), finish(second)], axis=3), same.astype(np.int64), labels]

    def input_batch(
        self, context: TaskContext, inputs: np.ndarray, finish: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return single images as pairs with themselves: the outputs are the embedding of each."""
        finished = finish(inputs)
        return np.concatenate([finished, finished], axis=3)

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return accuracy, ROC AUC and, of pairs of classes, the accuracy of the nearest neighbor."""
        return [PairMetric(), *([_Neighbors()] if context.class_names else [])]

    def validation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return the same, the neighbors among the first samples only."""
        return [PairMetric(), *([_Neighbors(_VALIDATED)] if context.class_names else [])]

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return distance and target of each pair; the score ranks wrong pairs first."""
        return {
            "targets": np.zeros(samples, np.int8),
            "predicted": np.zeros(samples, np.float32),
            "labels": np.zeros(samples, np.int32),
            "score": np.zeros(samples, np.float32),
            **{f"embedding_{number}": np.zeros(samples, np.float32) for number in range(2)},
        }

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch: distance, and the first two numbers of the embedding, for a drawing."""
        same, distances = np.asarray(targets["y"]), pair_distances(outputs["output"], outputs["output_1"])
        embedding = np.asarray(outputs["output"], np.float32)
        if embedding.ndim != 2:
            raise DataError(
                f"The network gives shape {embedding.shape}; a network for pairs gives an embedding of each image.",
                advice="Return two tensors (N, D).",
            )
        return {
            "targets": same,
            "predicted": distances,
            "labels": targets.get("label", np.full(len(same), -1)),
            "score": np.where(same > 0, -distances, distances),
            "embedding_0": embedding[:, 0],
            "embedding_1": embedding[:, min(1, embedding.shape[1] - 1)],
        }

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return the names of the classes that pairs were drawn from."""
        return {"classifier": False, "classes": list(context.class_names)}

    def report(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Report:
        """Return the metrics, the distances of same and of different pairs, and the embedding."""
        plain = super().report(summary, arrays)
        if "targets" not in arrays or not len(arrays["targets"]):
            return plain
        charts = [_distances(arrays), _embedding(arrays, summary.get("classes") or [])]
        return Report(plain.values, plain.tables, [chart for chart in charts if chart is not None])

    def pictures(
        self, context: TaskContext, arrays: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return both images."""
        return {"image": as_color(arrays[0]), "second": as_color(arrays[1])}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there is an embedding of the image."""
        return {"form": "embedding", "output": "output"}

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``embedding``, the numbers of the image."""
        if "output" not in outputs or np.ndim(outputs["output"]) != 1:
            return raw_outputs(outputs)
        return {"embedding": np.asarray(outputs["output"], np.float64).tolist()}


class _KeyedPairs(PairsOfClasses):
    """Pairs ``[image, image, same, class, key]``; the class is that of the first image."""

    def __init__(self, flow: IndexedFlow, labels: Sequence[int], *, seed: int, shuffle: bool) -> None:
        super().__init__(flow, labels, seed=seed, shuffle=shuffle)
        self._labels = np.asarray(labels)

    def datapoint(self, index: int) -> list[Any]:
        first, _, _ = self.pair(index)
        return [*super().datapoint(index), int(self._labels[first]), self.key(index)]


class _Neighbors(Metric):
    """Share of samples whose nearest other sample is of the same class.

    Args:
        most: samples at most; the others are not looked at. None for all.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._embeddings: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        if self._most is not None and sum(map(len, self._labels)) >= self._most:
            return
        self._embeddings.append(np.array(outputs["output"], np.float32))
        self._labels.append(np.array(targets["label"], np.int64))

    def compute(self) -> dict[str, Any]:
        if not self._labels:
            return {}
        found = nearest_neighbor_accuracy(np.concatenate(self._embeddings), np.concatenate(self._labels))
        return {} if found is None else {"nearest_neighbor_accuracy": found}

    def state(self) -> dict[str, np.ndarray]:
        if not self._labels:
            return {}
        return {"embeddings": np.concatenate(self._embeddings), "labels": np.concatenate(self._labels)}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        if state:
            self._embeddings.append(state["embeddings"])
            self._labels.append(state["labels"])


def _distances(arrays: Mapping[str, np.ndarray]) -> ReportChart | None:
    distances, same = arrays["predicted"], arrays["targets"] > 0
    finite = np.isfinite(distances)
    if not finite.any():
        return None
    edges = np.linspace(0, float(distances[finite].max()) or 1.0, _BINS + 1)
    series = [
        {"name": name, "values": np.histogram(distances[finite & chosen], edges)[0].tolist()}
        for name, chosen in (("Same", same), ("Different", ~same))
    ]
    names = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(edges)]
    data = {"kind": "bar", "names": names, "series": series, "x": "Distance", "y": "Pairs", "close": True}
    return ReportChart("distances", "Distances", data, "Same pairs should be close, different ones far apart.")


def _embedding(arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> ReportChart | None:
    labels = arrays["labels"]
    places = spread_places(len(labels), _DRAWN)
    known = labels[labels >= 0]
    numbers, counts = np.unique(known, return_counts=True)
    colored = sorted(numbers[np.argsort(-counts, kind="stable")][:_COLORED].tolist())

    def points(chosen: np.ndarray) -> list[list[Any]]:
        x, y = arrays["embedding_0"], arrays["embedding_1"]
        return [
            [float(x[place]), float(y[place]), int(place)]
            for place in places
            if chosen[place] and np.isfinite(x[place]) and np.isfinite(y[place])
        ]

    groups = [
        {"name": names[number] if number < len(names) else str(number), "points": points(labels == number)}
        for number in colored
    ]
    rest = points(~np.isin(labels, colored))
    if rest:
        groups.append({"name": "other classes" if colored else "images", "points": rest})
    data = {"kind": "scatter", "x": "Embedding 1", "y": "Embedding 2", "groups": groups}
    note = "The first two numbers of the embedding of each first image."
    if len(places) < len(labels):
        note += f" {len(places)} of {len(labels)} are drawn."
    return ReportChart("embedding", "Embedding", data, note)


PAIRS: Final = Pairs()
