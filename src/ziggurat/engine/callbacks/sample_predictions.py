"""Predictions for a few samples after each validation, saved in the job folder; the same samples every time.

The content of a prediction is that of ``ziggurat.tasks.base.Task.sample_prediction``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.engine.callback import NeedsFolder, missing_folder
from ziggurat.engine.callbacks.batches import plain_array
from ziggurat.engine.callbacks.periods import Recurring
from ziggurat.entities.json_lines import append_line, read_lines, replace_lines
from ziggurat.entities.sample_predictions import MOST_RECORDS, thinned_records
from ziggurat.layout import JobFolder
from ziggurat.tasks import TaskContext

__all__ = ["SamplePredictionWriter", "TaskSamples"]

_WHAT: Final = "The predictions for samples"


class TaskSamples:
    """Content of the predictions of a learning task.

    Args:
        context: of the job.
    """

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self.kind = context.task.name

    def head(self) -> Mapping[str, Any]:
        """Return the names of the classes; empty where there are none."""
        return {"class_names": list(self._context.class_names)}

    def names(self) -> Sequence[str]:
        """Return the values of the program that it needs."""
        return self._context.task.outputs

    def predictions(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a JSON object for each sample.

        Args:
            values: ``names()`` of a batch of samples.
        """
        arrays = {name: plain_array(values[name]) for name in self.names()}
        count = len(next(iter(arrays.values())))
        rows = ({name: array[row] for name, array in arrays.items()} for row in range(count))
        return [self._context.task.sample_prediction(self._context, row) or {} for row in rows]


class SamplePredictionWriter(Recurring, NeedsFolder):
    """Writes the predictions for a few samples into ``sample_predictions.jsonl`` of the job folder.

    It comes directly after the ``InferenceRunner`` and has the same period. It evaluates a batch, as a validation
    does, so the training is the same with and without it. When a training is resumed, lines of later steps
    are dropped.

    Args:
        task: makes the content of the predictions.
        batch: of the samples, as ``Program.evaluate`` takes it.
        samples: describes each sample of the batch, as JSON values: ``split``, ``row``, ``key`` and ``label``.
        every_k_epochs: after every k-th epoch; may be a fraction.
        before_train: also before the first step of the job.
        batch_size: of the evaluated batches, because a network may accept only one; samples are repeated to fill the
            last one. None to evaluate ``batch`` as it is.
        path: of the file; if it is left out, ``bind_folder`` sets that of the job.

    Raises:
        StorageError: from the training, if the disk is full.
    """

    def __init__(
        self,
        task: TaskSamples,
        batch: Any,
        samples: Sequence[Mapping[str, Any]],
        *,
        every_k_epochs: float | None = 1,
        before_train: bool = False,
        batch_size: int | None = None,
        path: Path | None = None,
    ) -> None:
        super().__init__(every_k_epochs=every_k_epochs)
        self._task = task
        self._batch = batch
        self._samples = list(samples)
        self._at_start = before_train
        self._batch_size = batch_size
        self._path = path
        self._count = 0

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another file was given."""
        self._path = self._path or folder.sample_predictions

    def declares(self) -> Sequence[str]:
        """Return the values that the task needs."""
        return tuple(self._task.names())

    def before_train(self) -> None:
        """Keep the lines of earlier attempts up to the present step; predict before the first step if requested."""
        step = self.trainer.global_step
        kept = [line for line in read_lines(self._file()) if isinstance(line.get("step"), int) and line["step"] <= step]
        self._rewrite(kept if step else [])
        if self._at_start and step == 0:
            self.trigger()

    def trigger(self) -> None:
        """Predict and write."""
        predictions: list[dict[str, Any]] = []
        for batch in self._batches():
            predictions += self._task.predictions(self.trainer.program.evaluate(batch, self.declares()))
        line = {
            "step": self.trainer.global_step,
            "epoch": self._epoch(),
            "time": self.trainer.monitors.now(),
            "predictions": predictions[: len(self._samples)],
        }
        append_line(self._file(), line, _WHAT, durable=False)
        self._count += 1
        if self._count > MOST_RECORDS:
            self._rewrite([each for each in read_lines(self._file()) if "predictions" in each])

    def _batches(self) -> Iterator[Any]:
        if self._batch_size is None:
            yield self._batch
            return
        count = len(self._samples)
        for first in range(0, count, self._batch_size):
            # Made anew each time: a batch of large images would take memory during the whole training.
            rows = np.arange(first, first + self._batch_size) % count
            yield [np.take(part, rows, axis=0) for part in self._batch]

    def _epoch(self) -> float:
        """Return the epochs that are done; a fraction within an epoch."""
        done = self.trainer.global_step / self.trainer.steps_per_epoch
        whole = float(self.trainer.epoch_num)
        return whole if self.trainer.local_step + 1 == self.trainer.steps_per_epoch else round(done, 2)

    def _rewrite(self, records: Sequence[Mapping[str, Any]]) -> None:
        kept = thinned_records(records, MOST_RECORDS // 2) if len(records) > MOST_RECORDS else list(records)
        head = {"version": 1, "kind": self._task.kind, **self._task.head(), "samples": self._samples}
        replace_lines(self._file(), [head, *kept], _WHAT)
        self._count = len(kept)

    def _file(self) -> Path:
        if self._path is None:
            raise missing_folder(self)
        return self._path
