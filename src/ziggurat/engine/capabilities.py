"""Optional capabilities of backends, programs and trained networks, each a protocol that ``isinstance`` checks.

A backend without any of them can still train, evaluate and predict, through its program. What a backend does beside
training is named, by the name of the protocol, in the ``capabilities`` of its
``ziggurat.entities.backend_info.BackendInfo``, so that pages know it and only what is asked for is loaded. Of programs
are ``HasArithmetic``, ``HasEvaluationNames``, ``HasGraph``, ``HasMovingSummaries``, ``HasRivalLosses``,
``HasSummaries``, ``SupportsSummaries`` and ``TakesLinearHead``; of trained networks ``GivesFeatures``,
``HasInferenceInputs`` and ``SupportsGradients``; of the backend's object ``ChoosesThreads``, ``SupportsCheckpoints``,
``SupportsFineTuning``, ``TrainsOnMixedLabels`` and ``TrainsOnNodes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ziggurat.engine.backend import ArraySpec, ProgramRequest
from ziggurat.engine.feed import BatchCycle
from ziggurat.tasks.base import TaskContext

__all__ = [
    "ChoosesThreads",
    "DescribedGraph",
    "ExportOrder",
    "ExportResult",
    "ForeignNetwork",
    "GivesFeatures",
    "HasArithmetic",
    "HasEvaluationNames",
    "HasGraph",
    "HasInferenceInputs",
    "HasMovingSummaries",
    "HasRivalLosses",
    "HasSummaries",
    "SupportsCheckpoints",
    "SupportsDebug",
    "SupportsDescribe",
    "SupportsExport",
    "SupportsFineTuning",
    "SupportsForeign",
    "SupportsGradients",
    "SupportsGraph",
    "SupportsInference",
    "SupportsSummaries",
    "TakesLinearHead",
    "TensorDescription",
    "TrainedNetwork",
    "TrainsOnMixedLabels",
    "TrainsOnNodes",
]


@runtime_checkable
class HasArithmetic(Protocol):
    """A program, or a source of batches, that says what decides the last bits of its numbers."""

    def arithmetic(self) -> Mapping[str, str | int | bool]:
        """Return name → value, such as ``framework``, ``threads``, ``devices`` and ``deterministic``.

        ``ziggurat.engine.arithmetic`` adds what holds for the whole process: NumPy, image libraries, processor.
        """
        ...


@runtime_checkable
class ChoosesThreads(Protocol):
    """A backend whose programs compute with ``threads`` of a request, and that knows how many are worth it."""

    def choose_threads(self, request: ProgramRequest, most: int) -> int:
        """Return the threads to compute with, from 1 on.

        Args:
            request: of the training.
            most: what the job may use.
        """
        ...


@runtime_checkable
class HasSummaries(Protocol):
    """A program that says which of its values are summaries: what jobs and ``MergeAllSummaries`` log."""

    def summary_names(self) -> Sequence[str]:
        """Return a part of ``names()``: single numbers, or serialized summaries as bytes."""
        ...


@runtime_checkable
class HasMovingSummaries(Protocol):
    """A program that says of which values a moving average is to be put."""

    def moving_summary_names(self) -> Mapping[str, float] | Sequence[str]:
        """Return a part of ``names()``, with each one's decay in [0, 1) where it is a mapping."""
        ...


@runtime_checkable
class HasEvaluationNames(Protocol):
    """A program whose ``evaluate`` gives other values than its ``step``."""

    def evaluation_names(self) -> Sequence[str]:
        """Return the names that ``evaluate`` can give a value for; of other programs, these are all of ``names()``."""
        ...


@runtime_checkable
class HasRivalLosses(Protocol):
    """A program that says whether its losses work against each other, as those of a GAN do: growth is no fault then."""

    def has_rival_losses(self) -> bool:
        """Return whether the network has several losses, each minimized over variables of its own."""
        ...


@runtime_checkable
class HasGraph(Protocol):
    """A program that can show its graph: what a TensorBoard monitor writes once a job."""

    def graph_bytes(self) -> bytes:
        """Return the graph as a serialized ``GraphDef`` (tensorflow/core/framework/graph.proto); empty for none."""
        ...


@runtime_checkable
class SupportsSummaries(Protocol):
    """A program that makes images, histograms and the like of a batch, as the network's author asked for them."""

    def summarise(self, batch: Any) -> bytes:
        """Return a serialized ``Summary`` (tensorflow/core/framework/summary.proto) of one batch; empty for none.

        Nothing is trained, and nothing changes that decides the steps to come.

        Args:
            batch: as ``Program.step`` takes it.
        """
        ...


@runtime_checkable
class TrainsOnMixedLabels(Protocol):
    """A backend whose programs train on batches of samples that have two labels each (Mixup, CutMix)."""

    trains_on_mixed_labels: bool
    """True; see ``mixes_labels`` of ``ziggurat.engine.backend.ProgramRequest``."""


@runtime_checkable
class TrainsOnNodes(Protocol):
    """A backend that trains one network by processes on several nodes, as ``trains_on_nodes`` of its info says.

    Each process has the ``place`` of its request and one device. That of rank 0 builds a program, which takes every
    step together with the others; those follow it.
    """

    def follow(self, request: ProgramRequest, batches: BatchCycle, after_step: Callable[[], None]) -> bool:
        """Compute the rows of this process in every step of rank 0, until rank 0 says that the training is over.

        Args:
            request: the one that rank 0 has, with the place of this process.
            batches: the ones that rank 0 has, too; their position becomes that of rank 0.
            after_step: called after each step.

        Returns:
            Whether rank 0 has said so; False if it cannot be reached any more.

        Raises:
            ZigguratError: if the network cannot be built or a step fails here; rank 0 is told.
        """
        ...


@runtime_checkable
class SupportsFineTuning(Protocol):
    """A backend whose programs train the head of a network and its backbone with rates of their own.

    Such a program has the hyperparameter ``backbone_rate``. While it is 0, a step trains the head alone: the network
    computes as it does in validation, without dropout and with the statistics that its batch norms have, and nothing
    of the backbone changes.
    """

    fine_tunes: bool
    """True; see ``fine_tuning`` of ``ziggurat.engine.backend.ProgramRequest``."""


@runtime_checkable
class SupportsCheckpoints(Protocol):
    """A backend that reads its framework's own checkpoints, for jobs that start from one.

    ``BackendInfo.checkpoint_suffix`` and ``weight_suffixes`` say how one is told by its path.
    """

    def read_checkpoint(self, path: Path) -> Mapping[str, np.ndarray]:
        """Return variable name → array."""
        ...


class TrainedNetwork(Protocol):
    """A network with the weights of a checkpoint, without an optimizer."""

    def evaluate(self, x: np.ndarray, y: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return the values of one batch.

        Args:
            x: (N, …), preprocessed.
            y: (N, …), the targets; None for a network that learns from its input alone.

        Returns:
            Single numbers, which are means over the batch: ``cost`` and what the user summarizes. Arrays with one row a
            sample: what ``predict`` returns.
        """
        ...

    def predict(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return ``output`` (and ``output_1``, …), and ``probabilities: (N, classes)`` of a classifier."""
        ...

    def close(self) -> None:
        """Free memory; closing twice does nothing."""
        ...


@runtime_checkable
class HasInferenceInputs(Protocol):
    """A trained network that may be given something beside its samples, such as the noise of a generator."""

    def inference_inputs(self) -> Mapping[str, ArraySpec]:
        """Return what may be given: name → one row of it; empty where there is nothing."""
        ...

    def predict(self, x: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> Mapping[str, np.ndarray]:
        """Return what ``TrainedNetwork.predict`` returns.

        Args:
            x: (N, …) samples.
            given: name in ``inference_inputs`` → (N, …); the network's own default where one is left out.
        """
        ...


@runtime_checkable
class SupportsGradients(Protocol):
    """A trained network that gives the gradients of a class score by the maps of a layer, as Grad-CAM needs them."""

    def map_layers(self) -> tuple[Sequence[str], str]:
        """Return the layers with maps in the order of the network, and the default one; empty where there is none."""
        ...

    def maps_and_gradients(self, x: np.ndarray, layer: str, class_number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's maps and the gradients of the score of a class by them, both (N, H, W, C) float32.

        Args:
            x: (N, H, W, C) float32, preprocessed.
            layer: one of ``map_layers``.
            class_number: whose score it is: what stands before the softmax, where there is such.
        """
        ...


@runtime_checkable
class GivesFeatures(Protocol):
    """A trained network that gives the inputs of its head, its last layer with weights."""

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs of the head, (N, D) float32; the network computes as in inference.

        Args:
            x: (N, …) samples, preprocessed.

        Raises:
            ConfigurationError: if the head is not one layer that is computed once, from one vector for each sample.
        """
        ...


@runtime_checkable
class TakesLinearHead(GivesFeatures, Protocol):
    """A program whose head can be a linear classifier that was fitted to its features."""

    def head_names(self) -> tuple[str, str]:
        """Return the names of weights and bias of the head in ``state()``.

        Raises:
            ConfigurationError: if the outputs of the network are not ``features @ weights + bias`` of its head.
        """
        ...

    def set_head(self, weights: np.ndarray, bias: np.ndarray) -> None:
        """Replace the weights of the head; averages of weights begin anew.

        Args:
            weights: (D, K) for K classes.
            bias: (K,).

        Raises:
            ConfigurationError: if the outputs of the network are not ``features @ weights + bias`` of its head.
        """
        ...


@runtime_checkable
class SupportsInference(Protocol):
    """Opens trained networks without building what trains them."""

    def open_trained(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> TrainedNetwork:
        """Return the network of a request with the arrays of a checkpoint.

        A ``pretrained`` that is not None says that the job started from a pretrained model; it holds nothing.

        Raises:
            CheckpointError: where the arrays are of another network.
            NetworkCodeError: where the user's network fails.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ExportOrder:
    """What an export is asked for.

    Args:
        format: its name.
        folder: where the files go; it exists and is empty.
        context: task and preprocessing of the network.
        preprocess: from decoded inputs (N, …) to what the network gets.
        inside: whether the model takes decoded inputs and preprocesses them itself.
        samples: (N, …) decoded inputs of real samples that prove the export: fitted images (N, height, width, C) uint8,
            several of a sample in the channels; encoded rows (N, F) float64; token numbers (N, length).
        targets: what the metrics of the task get of them: ``x`` and, where it is learned, ``y``.
    """

    format: str
    folder: Path
    context: TaskContext
    preprocess: Callable[[np.ndarray], np.ndarray]
    inside: bool
    samples: np.ndarray
    targets: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ExportResult:
    """What an export gave.

    Args:
        title: name of the format for people.
        file: name of the file or folder to load, in the order's folder.
        parity: fields of the parity report, as JSON values.
        input_shape: of what the model takes, None for what is open.
        input_dtype: name of the NumPy type that it takes.
        outputs: output → shape, None for what is open.
        parameters: numbers in all variables of the model.
        script: file that predicts with the model and needs no Ziggurat.
        packages: what that file needs beside NumPy.
        framework: framework and version that wrote it.
    """

    title: str
    file: str
    parity: Mapping[str, Any]
    input_shape: Sequence[int | None]
    input_dtype: str
    outputs: Mapping[str, Sequence[int | None] | None]
    parameters: int
    script: Path
    packages: Sequence[str]
    framework: str


@runtime_checkable
class SupportsExport(Protocol):
    """Writes trained networks in formats of other programs."""

    def export_formats(self) -> Sequence[str]:
        """Return the names of the formats."""
        ...

    def export(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray], order: ExportOrder) -> ExportResult:
        """Write a model and compare it with the network.

        Raises:
            UnknownNameError: where the format is not known.
            ConfigurationError: where the format cannot hold the network.
            MissingDependencyError: where its package is not installed.
        """
        ...


@runtime_checkable
class SupportsDescribe(Protocol):
    """Describes networks before they are trained."""

    def describe(self, request: ProgramRequest) -> Mapping[str, Any]:
        """Return, as plain values, what there is to know of a network.

        Returns:
            ``layers`` (name, shape, parameters, operations), ``operations`` (name, kind, shape, inputs), ``variables``
            (name, shape, count, trainable), ``parameters``, ``multiply_adds`` of one sample, ``outputs`` (shapes) and
            ``scalars``.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class DescribedGraph:
    """A description, and the graph that TensorBoard shows.

    Args:
        description: what ``SupportsDescribe.describe`` returns.
        graph: the graph of the training as a serialized ``GraphDef``; empty where there is none to show.
        problem: why there is none, as full sentences.
    """

    description: Mapping[str, Any]
    graph: bytes = b""
    problem: str = ""


@runtime_checkable
class SupportsGraph(Protocol):
    """Describes networks, and gives TensorBoard their graph: both of one build, which takes seconds."""

    def describe_with_graph(self, request: ProgramRequest) -> DescribedGraph:
        """Return what there is to know of a network, with the graph of its training."""
        ...


@runtime_checkable
class SupportsDebug(Protocol):
    """Runs networks eagerly. It is asked before anything else in its process, for some frameworks start only once."""

    def debug(self, request: ProgramRequest, batch: Sequence[np.ndarray]) -> Mapping[str, Any]:
        """Run a network once on one batch, in training mode.

        Returns:
            ``layers`` (layer, scope, shape, mean, deviation, and the line of the file that called it, None where
            it is unknown), ``variables`` (name → shape), ``output_shapes``, ``loss``, and ``notes`` (sentences on what
            was left out).

        Raises:
            NetworkCodeError: where the user's code fails; names file and line.
        """
        ...


@dataclass(frozen=True)
class TensorDescription:
    """A tensor of a foreign model that can be chosen as input or output.

    Args:
        name: of its operation.
        kind: type of the operation.
        dtype: type of its numbers.
        shape: its shape with None for what is open; None where even the rank is.
        readers: operations that read it; what nothing reads is a likely output.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...] | None
    readers: int = 0


class ForeignNetwork(Protocol):
    """A foreign model, run by the names of its operations."""

    kind: str
    """Form that it was found in."""

    signatures: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]
    """Name → (inputs, outputs), each key → operation name."""

    def inputs(self) -> Sequence[TensorDescription]:
        """Return what can be fed."""
        ...

    def outputs(self) -> Sequence[TensorDescription]:
        """Return what can be asked for, likely outputs first."""
        ...

    def predict(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Run the model: input → array in, output → array out."""
        ...

    def close(self) -> None:
        """Free memory."""
        ...


@runtime_checkable
class SupportsForeign(Protocol):
    """Opens models that were trained elsewhere."""

    def open_foreign(self, path: Path) -> ForeignNetwork:
        """Return a model that predicts.

        Raises:
            DataError: where the file is none, or damaged.
        """
        ...
