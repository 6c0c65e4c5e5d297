"""Evaluation of a trained job on a split: by one request, or as a job of its own with results for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.entities.baselines import baselines_line
from ziggurat.errors import UnknownNameError
from ziggurat.layout import JobFolder
from ziggurat.specs import EvaluateSpec
from ziggurat.tasks import MeansMetric
from ziggurat.tasks.base import named_targets
from ziggurat.worker.commands.trained import TrainedJob, open_network, open_trained_job
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.results import NAMED_FILES, SampleResults, write_results
from ziggurat.worker.source import is_dataset, open_source

__all__ = ["evaluate", "evaluate_split"]


_BATCH_SIZE: Final = 64
_SHOWN_FILES: Final = 20
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
        ``classes`` (class, samples, predicted, precision and recall, None where there is none); ``baselines``, the
        validation of the finished training beside that of simple models, in one line, or empty.
    """
    job = open_trained_job(Path(request["folder"]), request.get("checkpoint"))
    evaluation = Evaluation(job, request.get("split") or "val")
    metrics = job.task.metrics(job.context)
    is_known = False
    for batch in evaluation.batches():
        if batch.is_known:
            is_known = True
            for metric in metrics:
                metric.update(batch.values, batch.targets)
    found = {name: value for metric in metrics for name, value in metric.compute().items()} if is_known else {}
    fields = dict(job.task.summary_fields(job.context, is_known))
    fields.pop("classes", None)  # here it is the table of a metric, where there is one
    line = baselines_line(JobFolder(job.folder))
    return {**evaluation.figures(), "is_measured": is_known, **fields, **found, "baselines": line}


@dataclass(frozen=True)
class EvaluatedBatch:
    """What a network gave for a batch.

    Args:
        rows: (N) int64, of the samples in their split.
        targets: ``x`` and, where there is a target, ``y``.
        values: ``cost``, what the user summarizes, and the outputs, (N, …).
        is_known: whether the values that the task needs are among them.
    """

    rows: np.ndarray
    targets: Mapping[str, np.ndarray]
    values: Mapping[str, Any]
    is_known: bool


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
        self, job: TrainedJob, split: str, *, batch_size: int = _BATCH_SIZE, named_files: int = _SHOWN_FILES
    ) -> None:
        self._job = job
        self._split = split
        self._batch_size = batch_size
        self._source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(job.folder))
        if split not in self._source.splits:
            raise UnknownNameError("split of this data", split, self._source.splits)
        self._source.policy.remember = named_files
        self._flow: Any = self._source.splits[split]
        self._means = MeansMetric()
        self._openings: int | None = None

    def __len__(self) -> int:
        """Return how many samples the split has, those that cannot be read included."""
        return len(self._flow)

    def key(self, row: int) -> str:
        """Return what names a sample, such as its path."""
        return str(self._flow.key(row))

    def batches(self) -> Iterator[EvaluatedBatch]:
        """Open the network, and yield what it gives, in the order of the split."""
        pipeline = Pipeline(self._source, DataOptions(batch_size=self._batch_size), self._job.context)
        with open_network(self._job) as network, pipeline.evaluation(self._split, numbered=True) as flow:
            self._openings = _note_opening(self._job, self._split)
            for *batch, rows in flow:
                targets = named_targets(batch)
                values = network.evaluate(*batch[:2])
                self._means.update(values, targets)
                is_known = all(name in values for name in self._job.task.outputs)
                yield EvaluatedBatch(np.asarray(rows, np.int64), targets, values, is_known)

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
            "scalars": self._means.compute(),
            "task": self._job.task.name,
        }


def _note_opening(job: TrainedJob, split: str) -> int | None:
    """Note in a dataset that its test split is measured on; return how often that was done."""
    folder = Path(job.spec.data.source)
    if split != "test" or not is_dataset(folder):
        return None
    with Dataset(folder) as dataset:
        return dataset.count_opening(f"Evaluation of {job.checkpoint} of the job {job.folder.resolve()}.")


_TOP: Final = 5


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
    evaluation = Evaluation(job, spec.split, batch_size=spec.batch_size, named_files=NAMED_FILES)
    # What an evaluation says depends on no operating point: it is what one is chosen by.
    results = SampleResults(replace(job.context, thresholds=()), len(evaluation), _TOP)
    metrics = job.task.evaluation_metrics(job.context)
    if watch.stop_requested():
        return None
    done = 0
    for batch in evaluation.batches():
        done += len(batch.rows)
        if batch.is_known:
            keys = [evaluation.key(row) for row in batch.rows.tolist()]
            results.add(batch.rows.tolist(), keys, batch.values, batch.targets)
            for metric in metrics:
                metric.update(batch.values, batch.targets)
        watch.progress("predict", int(batch.rows[-1]) + 1, len(evaluation))
        if watch.stop_requested():
            return None
    watch.progress("predict", len(evaluation), len(evaluation))
    found = {name: value for metric in metrics for name, value in metric.compute().items()} if results.count else {}
    summary = _summary(spec, job, evaluation, found, is_known=results.count > 0)
    if results.count:
        results.write(folder.results, summary)
    else:
        write_results(folder.results, summary)
    primary = job.task.primary_metric
    value = found.get(primary.name)
    accuracy = "" if value is None else f", {primary.title} {value:.4f}"
    bad = summary["skipped"]
    return f"{done} samples of {spec.split}{accuracy}" + (f"; {bad} could not be read" if bad else "")


def _summary(
    spec: EvaluateSpec, job: TrainedJob, evaluation: Evaluation, metrics: Mapping[str, Any], *, is_known: bool
) -> dict[str, Any]:
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
        "openings": figures["test_openings"],
        "task": job.task.name,
        **job.task.summary_fields(job.context, is_known),
        **job.task.summary_metrics(metrics),
    }
