"""Contract of a learning task: the one place that knows what is learned, from the dataset to the page."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.baselines import Baseline
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.preprocessing import InputPreprocessing, input_spec
from ziggurat.tasks.report import MetricInfo, Report, ScoreInfo, plain_report
from ziggurat.tasks.sample_choice import ChoosesSamples
from ziggurat.tasks.threshold_choice import ChoosesThresholds

__all__ = [
    "PrimaryMetric",
    "SplitData",
    "Task",
    "TaskContext",
    "as_color",
    "chosen_thresholds",
    "constant_scores",
    "named_targets",
    "prediction",
    "prediction_picture",
    "raw_outputs",
]

_IGNORED = 255


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


class SplitData(Protocol):
    """A split of a dataset, for baselines. Each call reads it anew; what cannot be read is left out."""

    def labels(self) -> Iterable[Any]:
        """Return the label of each sample, without decoding its input."""
        ...

    def samples(self) -> Iterable[Sequence[np.ndarray]]:
        """Return what ``Task.sample`` returns for each sample."""
        ...

    def batches(self) -> Iterable[Sequence[np.ndarray]]:
        """Return batches as the network gets them."""
        ...


@dataclass(frozen=True)
class TaskContext:
    """What a task depends on in one job.

    Args:
        task: what is learned.
        schema: of the dataset.
        preprocessing: of the input.
        statistics: what ``Task.fit`` returned.
        thresholds: operating point of a trained network, one number for each of ``Task.threshold_names``; empty if
            none was chosen. Predictions obey it; metrics and results of evaluations do not.
    """

    task: Task
    schema: Schema
    preprocessing: InputPreprocessing
    statistics: Mapping[str, Any] = field(default_factory=dict)
    thresholds: tuple[float, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, by number; empty where there are none."""
        return self.schema.class_names

    @cached_property
    def target(self) -> ArraySpec | None:
        """What the task says of its target in this job, asked once; None without one."""
        return self.task.target(self)


class Task(ChoosesSamples, ChoosesThresholds, ABC):
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

    is_default: ClassVar[bool] = True
    """Whether a dataset is trained for it where neither network nor spec names a task."""

    outputs: ClassVar[tuple[str, ...]] = ("output",)
    """Values of the program that metrics, results and predictions are made of."""

    takes_class_lists: ClassVar[bool] = False
    """Whether a list of images may give a class for each."""

    moves_with_image: ClassVar[tuple[str, ...]] = ()
    """Parts of a sample after the image that its geometry moves, in order.

    For each ``image``, ``mask``, or ``boxes``: the rows of objects that ``ziggurat.tasks.detection_arrays`` describes.
    """

    fits_every_split: ClassVar[bool] = False
    """Whether ``fit`` gets the labels of every split, as for room for the largest of all samples."""

    reads_objects: ClassVar[bool] = False
    """Whether the label of a detection dataset is its objects as they are stored, see ``ziggurat.records.objects``.

    Where it is not, a sample is ``[image, boxes (K, 4) float32: left, top, right, bottom in px, classes (K) int64]``.
    """

    has_best: ClassVar[bool] = True
    """Whether the primary metric tells which checkpoint is better; where it does not, the newest is used."""

    generates: ClassVar[bool] = False
    """Whether a network for it may make something without a sample: a page then asks for a seed and a count."""

    image_form: ClassVar[str] = "image"
    """Form of the input of a network for it that takes images, as ``ziggurat.entities.StandardNetwork`` has it."""

    # ---- data

    def why_not_mixed(self, schema: Schema) -> str:
        """Return why the samples of a batch cannot be mixed (Mixup, CutMix), as a full sentence; empty where they can.

        Where they can, the target is a class number; a batch of training is then ``[x, y, second_y, share]``.

        Args:
            schema: of the dataset.
        """
        return f"Mixup and CutMix mix the classes of two images; {self.title} does not learn one class for each image."

    joins_objects: ClassVar[bool] = False
    """Whether images of a batch can be joined with all of their objects: mosaics, and Mixup without a second label."""

    def why_not_oversampled(self, schema: Schema) -> str:
        """Return why samples of rare classes cannot be seen more often, as a full sentence; empty where they can.

        Args:
            schema: of the dataset.
        """
        return f"In {self.title}, samples have no classes to be counted by."

    def classes_of(self, label: Any) -> Collection[int]:
        """Return the numbers of the classes that a sample has; only asked where samples can be oversampled.

        Args:
            label: as the dataset has it.
        """
        raise NotImplementedError

    @abstractmethod
    def accepts(self, schema: Schema) -> str:
        """Return why a dataset cannot be trained on, as a full sentence; empty where it can."""

    def completed(self, schema: Schema, points: Callable[[], Iterable[Sequence[Any]]]) -> Schema:
        """Return a schema with what the dataset leaves open and the task must know, such as names of classes.

        Args:
            schema: of the dataset.
            points: returns the samples of the training split, as ``sample`` takes them, for another look.
        """
        return schema

    def fit(self, schema: Schema, labels: Iterable[Any]) -> dict[str, Any]:
        """Return what a job needs to know of the targets of its training split, as JSON values; kept with the job.

        Args:
            schema: of the dataset.
            labels: of the training split, or of all splits with ``fits_every_split``; they are read only where the
                task needs them.
        """
        return {}

    def rows(
        self, schema: Schema, flow: IndexedFlow, labels: Callable[[], Sequence[int]], *, shuffle: bool, seed: int
    ) -> IndexedFlow | None:
        """Return a flow that makes samples of those of a split; None where they stand for themselves.

        Args:
            schema: of the dataset.
            flow: of the split.
            labels: returns the label of each of its samples.
            shuffle: for training, in a new order in each pass; otherwise the same samples in the order of the split.
            seed: of what is drawn.

        Returns:
            A flow whose datapoints are what ``sample`` takes, with a key at the end.
        """
        return None

    def input(self, context: TaskContext) -> ArraySpec:
        """Return what the network gets of one sample."""
        return input_spec(context.preprocessing)

    @abstractmethod
    def target(self, context: TaskContext) -> ArraySpec | None:
        """Return what the network learns to give for one sample; None where it learns from its input alone."""

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec | None:
        """Return a target to describe a network with before there is data.

        Args:
            shape: of its input.
            classes: how many there shall be.
        """
        return None

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

    def mask_fill(self, context: TaskContext) -> int:
        """Return the number that a mask gets at places that were outside of the image."""
        ignored = context.schema.ignore_class
        return _IGNORED if ignored is None else ignored

    def encode(self, context: TaskContext, label: Any, key: Any) -> np.ndarray:
        """Return the target of one sample."""
        spec = self.target(context)
        assert spec is not None
        return np.asarray(label, spec.dtype).reshape(spec.shape)

    def batch(
        self, context: TaskContext, arrays: Sequence[np.ndarray], finish: Callable[[np.ndarray], np.ndarray]
    ) -> list[np.ndarray]:
        """Return a batch as the network gets it.

        Args:
            context: of the job.
            arrays: (N, …) of each array of ``sample``.
            finish: returns (N, …) inputs as the network gets them: cropped, and preprocessed.
        """
        spec = context.target
        x = finish(arrays[0])
        return [x] if spec is None else [x, arrays[1].astype(spec.dtype)]

    def input_batch(
        self, context: TaskContext, inputs: np.ndarray, finish: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return inputs of a prediction, without targets, as the network gets them.

        Args:
            context: of the job.
            inputs: (N, …), what the preprocessing decoded.
            finish: as for ``batch``.
        """
        return finish(inputs)

    # ---- measuring

    @abstractmethod
    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return new metrics, which are updated with ``self.outputs``, and with ``x`` and ``y`` as the targets."""

    def evaluation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return the metrics of an evaluation job: those of ``metrics``, and what thresholds are chosen by."""
        return self.metrics(context)

    def validation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return the metrics of each validation in training; none where the program computes them itself."""
        return self.metrics(context)

    def baselines(self, context: TaskContext, train: SplitData, val: SplitData) -> list[Baseline]:
        """Return what simple models reach on the validation split; none where the task has no such model.

        One of their scores is named as the primary metric of the task.

        Args:
            context: of the job.
            train: what they learn from.
            val: what they are measured on.
        """
        return []

    # ---- results of an evaluation, sample by sample

    ranked_by: ClassVar[str] = "score"
    """Array of the results by which samples are ranked: small values are the worst samples."""

    @abstractmethod
    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return arrays of zeros, one row a sample, for what an evaluation keeps of each sample beside its row.

        Args:
            context: of the job.
            samples: how many there are at most.
            top: how many of the best classes of a sample are kept, where there are classes.
        """

    @abstractmethod
    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the values of the ``result_arrays`` for a batch.

        Args:
            context: of the job.
            outputs: name → (N, …), the values named by ``self.outputs``.
            targets: ``x`` and, where it is known, ``y`` of the batch.

        Raises:
            DataError: where the outputs are not what the task needs.
        """

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return what an evaluation says beside its metrics, as JSON values.

        ``classifier`` (whether there is one class and its score for each sample) and ``classes`` (names) are there in
        each task.

        Args:
            context: of the job.
            is_known: whether the network gave the outputs that the task needs.
        """
        return {"classifier": False, "classes": list(context.class_names)}

    def summary_metrics(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the summary of an evaluation job keeps of the values of the metrics: ``metrics``."""
        return {"metrics": dict(values)}

    # ---- pages

    metric_info: ClassVar[Mapping[str, MetricInfo]] = {}
    """Name of a metric, or of a column of its tables → what people should know of it."""

    score: ClassVar[ScoreInfo] = ScoreInfo()
    """What the array that ranks samples stands for."""

    def report(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Report:
        """Return what the page of an evaluation shows of all samples.

        Args:
            summary: of the job.
            arrays: of the results, by name; empty where there are none.
        """
        return plain_report(summary.get("metrics") or {}, self.metric_info, self.primary_metric.name)

    @property
    def templates(self) -> Path:
        """Folder of templates (Jinja) beside the module of the task; it need not exist.

        ``sample.html`` shows a sample of an evaluation, ``answer.html`` a prediction. Without them, pages show the
        values as they are.
        """
        return Path(inspect.getfile(type(self))).parent / "templates"

    def pictures(
        self, context: TaskContext, arrays: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return images (H, W, 3) uint8 that ``sample.html`` shows of a sample of an evaluation, by name.

        They are made when a page asks for them, by the network that was evaluated. None where the task has none.

        Args:
            context: of the job.
            arrays: of the sample, as ``sample`` gave them, images cropped as the network gets them.
            outputs: name → values of this sample.
        """
        return {}

    def sample_view(
        self, summary: Mapping[str, Any], values: Mapping[str, Any], asked: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Return what ``sample.html`` shows of a sample of an evaluation beside its values: ``tile.view``, plain data.

        Args:
            summary: of the job.
            values: what the results keep of the sample, by name.
            asked: name of each of ``sample_fields`` → value.
        """
        return {}

    sample_pictures: ClassVar[tuple[str, ...]] = ()
    """Names that ``pictures`` returns."""

    # ---- predictions

    @abstractmethod
    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return the prediction for one sample as JSON values, the same in shell, REST and pages.

        Args:
            context: of the job.
            outputs: name → values of this sample; ``raw_outputs`` tells of those that the task does not know.
            top: how many of the best classes, where there are classes.
        """

    def placed(
        self, context: TaskContext, prediction: Mapping[str, Any], original_size: tuple[int, int]
    ) -> dict[str, Any]:
        """Return a prediction in the coordinates of the original image, where it has coordinates.

        Args:
            context: of the job.
            prediction: that ``decode`` returned.
            original_size: (height, width) of the image in px, before it was fitted.
        """
        return dict(prediction)

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return how a prediction is made of the outputs, as JSON values, for programs without Ziggurat.

        ``form`` is one of these; ``output`` names what it is made of, by default the first output:

        - ``numbers``: shown as they are.
        - ``classes``: a probability for each class.
        - ``labels``: a logit for each label; one is predicted where its probability is ``threshold`` or more.
        - ``values``: measured values; ``names`` has a name for each.
        - ``mask``: scores (H, W, classes); ``palette`` has the color of each class, (R, G, B).
        - ``image``: an image (H, W, C), from 0 to 1 or from 0 to 255; numbers of another shape are shown as they are.
        - ``boxes``: boxes and scores (K, 4 + classes); ``names`` and ``colors`` of the classes, and ``iou``,
          ``least_score`` and ``most`` say which are kept.
        - ``embedding``: a place for each image; near ones are alike.

        ``thresholds`` is there if an operating point was chosen: a number for each of ``threshold_names``.
        """
        return {"form": "numbers", "output": "output"}

    def sample_label(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> Any:
        """Return what is true of such a sample, as JSON values; None where pages cannot show samples of the task.

        Args:
            context: of the job.
            arrays: of the sample, as ``sample`` gave them, images cropped as the network gets them.
        """
        return None

    def sample_prediction(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
        """Return the prediction for one of the few samples that are predicted for after each validation.

        None where the task has none, which it has for all samples or for none.
        """
        return None

    def picture(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the prediction for one sample as an image (H, W, 3) uint8; None where it is none."""
        return None

    def placed_picture(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], original_size: tuple[int, int]
    ) -> np.ndarray | None:
        """Return a prediction as an image that lies on the original, (H, W, 3), or (H, W, 4) with clear parts, uint8.

        None where there is none, or it has no place on the original.

        Args:
            context: of the job.
            outputs: name → values of this sample.
            original_size: (height, width) of the image in px, before it was fitted.
        """
        return None


def prediction(
    context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int, original_size: tuple[int, int] | None
) -> dict[str, Any]:
    """Return the prediction for one sample, in the coordinates of the original image where its size is known.

    Args:
        context: of the job.
        outputs: name → values of this sample.
        top: how many of the best classes, where there are classes.
        original_size: (height, width) in px of an image before it was fitted; None for other inputs.
    """
    found = context.task.decode(context, outputs, top=top)
    return found if original_size is None else context.task.placed(context, found, original_size)


def chosen_thresholds(context: TaskContext) -> dict[str, Any]:
    """Return the part of ``Task.postprocessing`` that an operating point adds; empty if none was chosen."""
    return {"thresholds": list(context.thresholds)} if context.thresholds else {}


def prediction_picture(
    context: TaskContext, outputs: Mapping[str, np.ndarray], original_size: tuple[int, int] | None
) -> tuple[np.ndarray | None, bool]:
    """Return the prediction for one sample as an image, None where it is none, and whether it lies on the original.

    Args:
        context: of the job.
        outputs: name → values of this sample.
        original_size: (height, width) in px of an image before it was fitted; None for other inputs.
    """
    placed = None if original_size is None else context.task.placed_picture(context, outputs, original_size)
    return (context.task.picture(context, outputs), False) if placed is None else (placed, True)


def as_color(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, 1) or (H, W, 3) uint8 with three channels."""
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image


def named_targets(batch: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a batch by name, as metrics and results take them: ``x``, ``y`` and ``label``."""
    return dict(zip(("x", "y", "label"), batch, strict=False))


def raw_outputs(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the numbers themselves as JSON values: ``outputs``, name → ``shape`` and ``values``."""
    values = {name: np.asarray(each, np.float64) for name, each in outputs.items()}
    return {"outputs": {name: {"shape": list(each.shape), "values": each.tolist()} for name, each in values.items()}}


def constant_scores(context: TaskContext, output: np.ndarray, val: SplitData) -> dict[str, float]:
    """Return the metrics of the task for a model that gives the same output for every sample.

    Args:
        context: of the job.
        output: for one sample.
        val: what it is measured on.
    """
    metrics = context.task.metrics(context)
    for batch in val.batches():
        outputs = {"output": np.broadcast_to(output, (len(batch[0]), *output.shape))}
        for metric in metrics:
            metric.update(outputs, named_targets(batch))
    found = {name: value for metric in metrics for name, value in metric.compute().items()}
    return {name: value for name, value in found.items() if isinstance(value, float)}
