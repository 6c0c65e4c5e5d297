"""Evaluation of a trained job on a split: by one request, or as a job of its own with results for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import UnknownNameError
from ziggurat.layout import JobFolder
from ziggurat.specs import EvaluateSpec
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.results import SampleResults, write_results
from ziggurat.worker.source import is_dataset, open_source

__all__ = ["Confusion", "evaluate", "evaluate_split"]


_MANY_CLASSES: Final = 5
_BATCH_SIZE: Final = 64
_EVALUATION_NAMED_FILES: Final = 20
"""How many of the files that cannot be read are named; all are counted."""


def evaluate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate a job's network.

    Args:
        request: ``folder``; ``split`` (default ``val``); ``checkpoint`` (default the best, else the latest).

    Returns:
        ``folder``, ``checkpoint``, ``step``, ``epoch``, ``split``, ``samples``, ``skipped`` (how many files could not
        be read), ``unreadable`` (file and reason of the first 20 of them), ``test_openings`` (how often the test split
        of a dataset was measured on, this time included; None for other splits and other data), ``scalars`` (means
        over all samples: ``cost`` and what the user summarizes), ``classifier``; and of a classifier ``accuracy``,
        ``top_5`` (with more than five classes), ``confusion`` (row: the label, column: what was predicted) and
        ``classes`` (class, samples, predicted, precision and recall, None where there is none).
    """
    job = open_trained_job(Path(request["folder"]), request.get("checkpoint"))
    evaluation = Evaluation(job, request.get("split") or "val")
    confusion = Confusion(job.class_names)
    for batch in evaluation.batches():
        if "probabilities" in batch.values:
            confusion.add(batch.values["probabilities"], batch.labels)
    return {
        **evaluation.figures(),
        "classifier": confusion.samples > 0,
        **(confusion.figures() if confusion.samples else {}),
    }


@dataclass(frozen=True)
class EvaluatedBatch:
    """What a network gave for a batch.

    Args:
        rows: (N) int64, of the samples in their split.
        labels: (N) int64.
        values: ``cost``, ``probabilities``, and what the user summarizes.
    """

    rows: np.ndarray
    labels: np.ndarray
    values: Mapping[str, Any]


class Evaluation:
    """An evaluation of a network on a split that goes on batch by batch.

    Args:
        job: what was trained.
        split: of the data that it was trained on.
        batch_size: samples at once.
        named_files: how many of the files that cannot be read are named.

    Raises:
        UnknownNameError: where the data has no such split.
    """

    def __init__(
        self, job: TrainedJob, split: str, *, batch_size: int = _BATCH_SIZE, named_files: int = _EVALUATION_NAMED_FILES
    ) -> None:
        self._job = job
        self._split = split
        self._batch_size = batch_size
        self._source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(job.folder))
        if split not in self._source.splits:
            raise UnknownNameError("split of this data", split, self._source.splits)
        self._source.policy.remember = named_files
        self._flow: Any = self._source.splits[split]
        self._means = _Means()
        self._openings: int | None = None

    def __len__(self) -> int:
        """Return how many samples the split has, those that cannot be read included."""
        return len(self._flow)

    def key(self, row: int) -> str:
        """Return what names a sample, such as its path."""
        return str(self._flow.key(row))

    def batches(self) -> Iterator[EvaluatedBatch]:
        """Open the network, and yield what it gives, in the order of the split."""
        pipeline = Pipeline(self._source, DataOptions(batch_size=self._batch_size), self._job.preprocessing)
        with open_network(self._job) as network, pipeline.evaluation(self._split, numbered=True) as flow:
            self._openings = _note_opening(self._job, self._split)
            for images, labels, rows in flow:
                values = network.evaluate(images, labels)
                self._means.add(values, len(labels))
                yield EvaluatedBatch(np.asarray(rows, np.int64), labels, values)

    def figures(self) -> dict[str, Any]:
        """Return what ``evaluate`` says of networks of every kind."""
        bad = self._source.policy.counts()
        return {
            **self._job.summary(),
            "split": self._split,
            "samples": self._means.samples,
            "skipped": bad.total,
            "unreadable": [{"file": str(key), "reason": reason} for key, reason in bad.first],
            "test_openings": self._openings,
            "scalars": self._means.values(),
        }


def _note_opening(job: TrainedJob, split: str) -> int | None:
    """Note in a dataset that its test split is measured on; return how often that was done."""
    folder = Path(job.spec.data.source)
    if split != "test" or not is_dataset(folder):
        return None
    with Dataset(folder) as dataset:
        return dataset.count_opening(f"Evaluation of {job.checkpoint} of the job {job.folder.resolve()}.")


class _Means:
    """Means over samples of numbers that came as means over batches."""

    def __init__(self) -> None:
        self.samples = 0
        self._sums: dict[str, float] = {}

    def add(self, values: Mapping[str, Any], count: int) -> None:
        self.samples += count
        for name, value in values.items():
            if np.ndim(value) == 0:
                self._sums[name] = self._sums.get(name, 0.0) + float(value) * count

    def values(self) -> dict[str, float]:
        return {name: total / max(1, self.samples) for name, total in sorted(self._sums.items())}


class Confusion:
    """Counts which class was taken for which.

    Args:
        class_names: by class number.
    """

    def __init__(self, class_names: list[str]) -> None:
        self._names = class_names
        self._matrix = np.zeros((len(class_names), len(class_names)), np.int64)
        self._among_five = 0
        self.samples = 0

    def add(self, probabilities: np.ndarray, labels: np.ndarray) -> None:
        """Count a batch.

        Args:
            probabilities: (N, classes).
            labels: (N) int64.
        """
        ranks = np.argsort(-probabilities, axis=1, kind="stable")[:, :_MANY_CLASSES]
        np.add.at(self._matrix, (labels, ranks[:, 0]), 1)
        self._among_five += int((ranks == labels[:, None]).any(axis=1).sum())
        self.samples += len(labels)

    def figures(self) -> dict[str, Any]:
        """Return accuracy, top-5 accuracy, the matrix, and precision and recall of each class."""
        right, actual, predicted = self._matrix.diagonal(), self._matrix.sum(axis=1), self._matrix.sum(axis=0)
        figures: dict[str, Any] = {"accuracy": float(right.sum() / self.samples)}
        if len(self._names) > _MANY_CLASSES:
            figures["top_5"] = self._among_five / self.samples
        figures["confusion"] = self._matrix.tolist()
        figures["classes"] = [
            {
                "class": name,
                "samples": int(actual[number]),
                "predicted": int(predicted[number]),
                "precision": _share(right[number], predicted[number]),
                "recall": _share(right[number], actual[number]),
            }
            for number, name in enumerate(self._names)
        ]
        return figures


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


_TOP: Final = 5
_NAMED_FILES: Final = 1000


def evaluate_split(spec: EvaluateSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Evaluate, from the beginning in each attempt; return what is to be said.

    None stands for an end that was requested.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        watch: is told of progress, and asked whether to stop.

    Raises:
        ZigguratError: where model or data cannot be used.
    """
    watch.progress("load", 0, 0)
    job = open_trained_job(Path(spec.model), spec.checkpoint or None)
    evaluation = Evaluation(job, spec.split, batch_size=spec.batch_size, named_files=_NAMED_FILES)
    results = SampleResults(len(evaluation), len(job.class_names), _TOP)
    if watch.stop_requested():
        return None
    done, right = 0, 0
    for batch in evaluation.batches():
        done += len(batch.labels)
        probabilities = batch.values.get("probabilities")
        if probabilities is not None:
            keys = [evaluation.key(row) for row in batch.rows.tolist()]
            results.add(batch.rows.tolist(), keys, batch.labels, np.asarray(probabilities))
            right += int((np.argmax(probabilities, axis=1) == batch.labels).sum())
        watch.progress("predict", int(batch.rows[-1]) + 1, len(evaluation))
        if watch.stop_requested():
            return None
    watch.progress("predict", len(evaluation), len(evaluation))
    summary = _summary(spec, job, evaluation, is_classifier=results.count > 0)
    if results.count:
        results.write(folder.results, summary)
    else:
        write_results(folder.results, summary)
    accuracy = f", accuracy {right / results.count:.4f}" if results.count else ""
    bad = summary["skipped"]
    return f"{done} samples of {spec.split}{accuracy}" + (f"; {bad} could not be read" if bad else "")


def _summary(spec: EvaluateSpec, job: TrainedJob, evaluation: Evaluation, *, is_classifier: bool) -> dict[str, Any]:
    figures = evaluation.figures()
    return {
        "kind": spec.kind,
        "model": figures["folder"],
        "checkpoint": figures["checkpoint"],
        "step": figures["step"],
        "epoch": figures["epoch"],
        "split": spec.split,
        "data": job.spec.data.source,
        "count": figures["samples"],
        "skipped": figures["skipped"],
        "failures": [{"key": each["file"], "reason": each["reason"]} for each in figures["unreadable"]],
        "scalars": figures["scalars"],
        "classifier": is_classifier,
        "classes": list(job.class_names),
        "openings": figures["test_openings"],
    }
