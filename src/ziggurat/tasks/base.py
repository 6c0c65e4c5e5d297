"""Contract of a learning task: the one place that knows what is learned, from the dataset to the page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.preprocessing import InputPreprocessing

__all__ = ["PrimaryMetric", "Task", "TaskContext"]


@dataclass(frozen=True)
class PrimaryMetric:
    """The metric by which a training is judged: best checkpoint, early stopping, comparisons.

    Args:
        name: of the value that a ``Metric`` computes, such as ``mean_iou``; its curve is ``validation_<name>``.
        mode: whether large or small values are good.
        title: for people, in lower case.
    """

    name: str
    mode: Literal["min", "max"]
    title: str


@dataclass(frozen=True)
class TaskContext:
    """What a task depends on in one job.

    Args:
        schema: of the dataset.
        preprocessing: of the input.
    """

    schema: Schema
    preprocessing: InputPreprocessing

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, by number; empty where there are none."""
        return self.schema.class_names


class Task(ABC):
    """What is learned.

    A task holds no state: everything that depends on a job is in its ``TaskContext``. A batch is ``[x, y]``, or
    ``[x]`` for a task without a target.
    """

    name: ClassVar[str]
    """Under which a spec and the registry (entry-point group ``ziggurat.tasks``) know it."""

    title: ClassVar[str]
    """For people, in lower case, such as ``image segmentation``."""

    primary_metric: ClassVar[PrimaryMetric]

    order: ClassVar[int] = 100
    """Of the tasks that a dataset can be trained for, the one with the smallest is the default."""

    outputs: ClassVar[tuple[str, ...]] = ("output",)
    """Values of the program that metrics, results and predictions are made of."""

    moves_with_image: ClassVar[tuple[str, ...]] = ()
    """Parts of a sample after the image that its geometry moves: ``image`` or ``mask`` for each, in order."""

    # ---- data

    @abstractmethod
    def accepts(self, schema: Schema) -> str:
        """Return why a dataset cannot be trained on, as a full sentence; empty where it can."""

    @abstractmethod
    def target(self, context: TaskContext) -> ArraySpec | None:
        """Return what the network learns to give for one sample; None where it learns from its input alone."""

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return a sample as the arrays that batches are made of: the input, and the target where there is one.

        Args:
            context: of the job.
            point: the parts of a record, and its label: ``[image, label]``, ``[image, mask]``, ``[row, target]``, …
            key: of the sample, for errors.

        Raises:
            DatapointError: where it cannot be read.
        """
        return [context.preprocessing.decode(point[0], key), self.encode(context, point[1], key)]

    def encode(self, context: TaskContext, label: Any, key: Any) -> np.ndarray:
        """Return the target of one sample."""
        spec = self.target(context)
        assert spec is not None
        return np.asarray(label, spec.dtype).reshape(spec.shape)

    def batch(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return a batch as the network gets it.

        Args:
            context: of the job.
            arrays: (N, …) of each array of ``sample``.
        """
        spec = self.target(context)
        x = context.preprocessing.finish(arrays[0])
        return [x] if spec is None else [x, arrays[1].astype(spec.dtype)]

    # ---- measuring

    @abstractmethod
    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return new metrics, to be updated with ``outputs`` and the target ``y`` (and ``x``) of each batch."""

    def validation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return the metrics of each validation in training; none where the program computes them itself."""
        return self.metrics(context)

    # ---- results of an evaluation, sample by sample

    @abstractmethod
    def result_arrays(self, context: TaskContext) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        """Return name → (dtype, shape of one row) of what an evaluation keeps of each sample, beside ``rows``.

        ``score`` is there in each task: small values are the worst samples.
        """

    @abstractmethod
    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Sequence[np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the ``result_arrays`` of a batch.

        Args:
            context: of the job.
            outputs: name → (N, …), the values named by ``self.outputs``.
            targets: the arrays of the batch: ``[x, y]``.
        """

    # ---- predictions

    @abstractmethod
    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return the prediction for one sample as JSON values, the same in shell, REST and pages.

        Args:
            context: of the job.
            outputs: name → values of this sample.
            top: how many of the best classes, where there are classes.
        """

    def picture(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the prediction for one sample as an image (H, W, 3) uint8; None where it is none."""
        return None
