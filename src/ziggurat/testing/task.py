"""Conformance suite for learning tasks: what every task promises to the pipeline, evaluations, pages and exports."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.entities.best_checkpoint import primary_tags
from ziggurat.records.schema import Schema
from ziggurat.tasks import InputPreprocessing, Task, TaskContext
from ziggurat.tasks import task as registered_task
from ziggurat.tasks.base import named_targets

__all__ = ["TaskConformance"]

_SAMPLES: Final = 6
_TOP: Final = 3


class TaskConformance(ABC):
    """Subclass it in a test file and return a task with a small dataset for it."""

    @abstractmethod
    def task(self) -> Task:
        """Return the task."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the schema of a dataset that it accepts."""

    @abstractmethod
    def foreign_schema(self) -> Schema:
        """Return the schema of a dataset that it does not accept."""

    @abstractmethod
    def preprocessing(self) -> InputPreprocessing:
        """Return the preprocessing of the inputs."""

    @abstractmethod
    def points(self) -> Sequence[Sequence[Any]]:
        """Return six samples or more, as ``Task.sample`` takes them, with different targets."""

    @abstractmethod
    def perfect(self, batch: Sequence[np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the outputs of a network without any error for a batch ``[x, y]``."""

    @abstractmethod
    def poor(self, batch: Sequence[np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the outputs of a network with errors for a batch ``[x, y]``."""

    # ---- tests

    def test_it_is_registered_by_its_name(self) -> None:
        """Specs and datasets find it by its entry point; the curve of its primary metric is known."""
        task = self.task()
        assert registered_task(task.name) is task
        assert task.title
        assert task.title == task.title.strip()
        assert f"validation_{task.primary_metric.name}" in primary_tags()

    def test_it_accepts_its_data_and_says_why_not_others(self) -> None:
        """The reason is a full sentence: pages and errors show it as it is."""
        assert self.task().accepts(self.schema()) == ""
        reason = self.task().accepts(self.foreign_schema())
        assert reason.endswith(".")
        assert reason[0].isupper()

    def test_samples_make_batches_of_the_described_arrays(self) -> None:
        """A program is built from the description, before the first batch is there."""
        task, context = self.task(), self.context()
        batch = self._batch()
        x, target = task.input(context), task.target(context)
        assert batch[0].shape == (len(self.points()), *x.shape)
        assert np.can_cast(batch[0].dtype, x.dtype, "same_kind")
        if target is not None:
            assert batch[1].shape == (len(self.points()), *target.shape)
            assert batch[1].dtype == np.dtype(target.dtype)
            if target.is_class_number and target.classes is not None:
                assert batch[1].max() < target.classes

    def test_every_sample_gives_arrays_of_one_form(self) -> None:
        """Batches are made of them in any order."""
        context = self.context()
        forms = {
            tuple((np.shape(each), np.asarray(each).dtype) for each in self.task().sample(context, point, "key"))
            for point in self.points()
        }
        assert len(forms) == 1

    def test_the_statistics_are_json(self) -> None:
        """They are kept in the folder of the job."""
        found = self.context().statistics
        assert json.loads(json.dumps(found)) == found

    def test_postprocessing_is_json_of_an_output(self) -> None:
        """It stands beside an export."""
        found = self.task().postprocessing(self.context())
        assert json.loads(json.dumps(found)) == found
        assert found["form"]
        assert found["output"] in self.task().outputs

    def test_merged_metrics_are_those_of_one_pass(self) -> None:
        """Parts of a split may be measured apart."""
        batch = self._batch()
        outputs = self.poor(batch)
        whole = self._measured(outputs, batch)
        half = len(batch[0]) // 2
        parts = [self._metrics(_part(outputs, rows), _rows(batch, rows)) for rows in (slice(half), slice(half, None))]
        for first, second in zip(*parts, strict=True):
            first.merge(second.state())
        merged = {name: value for metric in parts[0] for name, value in metric.compute().items()}
        assert _close(merged, whole)
        assert json.loads(json.dumps(whole)) == whole

    def test_fewer_errors_have_a_better_primary_metric(self) -> None:
        """It decides the best checkpoint."""
        batch, primary = self._batch(), self.task().primary_metric
        good, bad = (self._measured(outputs, batch) for outputs in (self.perfect(batch), self.poor(batch)))
        if self.task().metrics(self.context()):
            better = good[primary.name] > bad[primary.name]
            assert better == (primary.mode == "max")

    def test_results_fill_their_arrays(self) -> None:
        """An evaluation keeps them for each sample; the worst come first by one of them."""
        task, context, batch = self.task(), self.context(), self._batch()
        arrays = task.result_arrays(context, len(batch[0]), _TOP)
        found = task.results(context, self.poor(batch), self._targets(batch))
        for name, array in arrays.items():
            assert len(array) == len(batch[0])
            rows = np.asarray(found[name])
            assert rows.shape[: array.ndim] == array.shape or rows.shape[1] >= array.shape[1]
        if arrays:
            assert task.ranked_by in arrays
            good = np.asarray(task.results(context, self.perfect(batch), self._targets(batch))[task.ranked_by])
            assert np.mean(good) > np.mean(np.asarray(found[task.ranked_by]))

    def test_predictions_are_json_in_every_form(self) -> None:
        """Shell, REST and pages show the same values; unknown outputs are told, too."""
        task, context = self.task(), self.context()
        outputs = {name: np.asarray(each)[0] for name, each in self.perfect(self._batch()).items()}
        found = task.decode(context, outputs, top=_TOP)
        assert found
        assert json.loads(json.dumps(found)) == found
        strange = {"something": np.arange(3.0)}
        assert json.loads(json.dumps(task.decode(context, strange)))["outputs"]["something"]["shape"] == [3]

    def test_a_picture_is_an_image(self) -> None:
        """It is drawn as it is."""
        outputs = {name: np.asarray(each)[0] for name, each in self.perfect(self._batch()).items()}
        picture = self.task().picture(self.context(), outputs)
        assert picture is None or (picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3)

    def test_summary_fields_are_json(self) -> None:
        """They stand in the summary of an evaluation."""
        found = dict(self.task().summary_fields(self.context(), True))
        assert json.loads(json.dumps(found)) == found

    # ---- inside

    def context(self) -> TaskContext:
        """Return the context of a job."""
        task, points = self.task(), self.points()
        schema = task.completed(self.schema(), lambda: points)
        statistics = task.fit(schema, (point[-1] for point in points))
        return TaskContext(task, schema, self.preprocessing(), statistics)

    def _batch(self) -> list[np.ndarray]:
        task, context, points = self.task(), self.context(), self.points()
        assert len(points) >= _SAMPLES
        samples = [task.sample(context, point, str(number)) for number, point in enumerate(points)]
        arrays = [np.stack(part) for part in zip(*samples, strict=True)]
        return task.batch(context, arrays, context.preprocessing.finish)

    def _targets(self, batch: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return named_targets(batch)

    def _metrics(self, outputs: Mapping[str, np.ndarray], batch: Sequence[np.ndarray]) -> Sequence[Any]:
        metrics = self.task().metrics(self.context())
        for metric in metrics:
            metric.update(outputs, self._targets(batch))
        return metrics

    def _measured(self, outputs: Mapping[str, np.ndarray], batch: Sequence[np.ndarray]) -> dict[str, Any]:
        return {name: value for metric in self._metrics(outputs, batch) for name, value in metric.compute().items()}


def _part(outputs: Mapping[str, np.ndarray], rows: slice) -> dict[str, np.ndarray]:
    return {name: np.asarray(each)[rows] for name, each in outputs.items()}


def _rows(batch: Sequence[np.ndarray], rows: slice) -> list[np.ndarray]:
    return [each[rows] for each in batch]


def _close(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal but for the rounding of numbers."""
    if isinstance(first, float) or isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_close(value, second[name]) for name, value in first.items())
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_close, first, second))
    return first == second
