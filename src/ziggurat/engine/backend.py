"""Backend interface: how a worker gets a framework's program without either depending on the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, runtime_checkable

import numpy as np

from ziggurat.engine.fine_tuning import FineTuningRequest
from ziggurat.engine.program import Program
from ziggurat.errors import ConfigurationError
from ziggurat.tasks.arrays import ArraySpec

__all__ = [
    "ArraySpec",
    "Backend",
    "ProcessPlace",
    "ProgramRequest",
    "RequestArrays",
    "class_arrays",
    "single_arrays",
]


@dataclass(frozen=True)
class ProcessPlace:
    """Place of this process among those of a training over several nodes.

    Args:
        rank: its number, from 0. The first one has the loop; the others follow it.
        size: number of processes.
        address: of the node of rank 0.
        port: on which rank 0 waits for the others.
    """

    rank: int
    size: int
    address: str
    port: int


@dataclass(frozen=True, kw_only=True)
class ProgramRequest:
    """What a program is made of, in plain values.

    Args:
        network: name in the zoo, or path of a network file; empty for the backend's own default.
        network_text: content of the network file; None for a name in the zoo.
        inputs: name → what the network gets of a sample, after all preprocessing.
        targets: name → what it learns to give; empty where it learns from its inputs alone. A batch is a list of the
            arrays of ``inputs``, then those of ``targets``, both in their order; it may hold more than a backend uses.
        mixes_labels: a batch of training has two arrays more: (N) class numbers of the samples that were mixed in, and
            (N) the share of ``y``, which is the same in a whole batch. The loss is ``share`` of that for ``y`` and the
            rest of that for the others. Only for backends that ``TrainsOnMixedLabels``.
        class_weights: factor of each class in the classification loss; empty for equal ones.
        batch_size: samples in a step, over all devices.
        optimizer: name of the optimizer.
        optimizer_options: its parameters.
        learning_rate: the first learning rate.
        weight_decay: factor of the squared weights in the cost, halved.
        gradient_clip: largest global norm of the gradients; None for no limit.
        gradient_accumulation_steps: batches whose gradients are averaged for one step of the optimizer.
        ema_decay: decay of the averages of the weights, which everything but a training step computes with; None
            for no averages. ``state()`` names an average ``ziggurat/averages/`` and the name of its weight.
        precision: ``float32``, ``bf16`` or ``fp16``.
        devices: names of devices; empty for the backend's choice.
        threads: of the CPU that operations compute with, in each process; 0 for the framework's choice.
        freeze: patterns (``conv*``) of variable names that are not trained.
        pretrained: variable name → array to start from; None to start from fresh weights.
        fine_tuning: rates of backbone and head; None for one rate. A program that fine-tunes has a hyperparameter more,
            ``backbone_rate``, which is 1 at first; at 0, all but the head stays as it is. Only for backends that
            ``SupportsFineTuning``.
        seed: of first weights, dropout and everything else that is drawn in the program.
        options: what only this backend knows; it checks them.
        place: of this process, in a training over several nodes, each of whose processes has one device; None
            elsewhere. Only for backends that are a ``TrainsOnNodes``.
    """

    network: str = ""
    network_text: str | None = None
    inputs: Mapping[str, ArraySpec] = field(default_factory=dict)
    targets: Mapping[str, ArraySpec] = field(default_factory=dict)
    mixes_labels: bool = False
    class_weights: tuple[float, ...] = ()
    batch_size: int = 1
    optimizer: str = "sgd"
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    gradient_clip: float | None = None
    gradient_accumulation_steps: int = 1
    ema_decay: float | None = None
    precision: str = "float32"
    devices: tuple[str, ...] = ()
    threads: int = 0
    freeze: tuple[str, ...] = ()
    pretrained: Mapping[str, np.ndarray] | None = None
    fine_tuning: FineTuningRequest | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    place: ProcessPlace | None = None


@runtime_checkable
class Backend(Protocol):
    """What the entry-point group ``ziggurat.backends`` holds: an object that builds programs."""

    name: str
    """Name under which a spec asks for it."""

    def why_not(self) -> str:
        """Return why the backend cannot work on this machine and how to mend it; empty where it can."""
        ...

    def build(self, request: ProgramRequest) -> Program:
        """Return a program, its variables initialized.

        Raises:
            ConfigurationError: where the request asks for what the backend does not do.
            NetworkCodeError: where the user's network fails.
            MissingDependencyError: where the framework is not installed.
        """
        ...


class RequestArrays(TypedDict):
    """The fields of a request that describe its batches."""

    inputs: Mapping[str, ArraySpec]
    targets: Mapping[str, ArraySpec]


def class_arrays(shape: Sequence[int], classes: int | None) -> RequestArrays:
    """Return ``inputs`` and ``targets`` of a request for samples ``x`` with one class number ``y`` each.

    Args:
        shape: of a sample, such as (H, W, C).
        classes: how many there are; None where that is not known.
    """
    return {"inputs": {"x": ArraySpec(tuple(shape))}, "targets": {"y": ArraySpec((), "int64", classes)}}


def single_arrays(request: ProgramRequest) -> tuple[ArraySpec, ArraySpec | None]:
    """Return the input and the target of a request, None for no target: for backends that take one of each.

    Raises:
        ConfigurationError: where there are more, or there is no input.
    """
    if len(request.inputs) != 1 or len(request.targets) > 1:
        raise ConfigurationError(
            "This backend trains with one input and at most one target.",
            received=f"inputs {', '.join(request.inputs) or 'none'}; targets {', '.join(request.targets) or 'none'}",
            advice="Put them into one array each, or choose another backend.",
        )
    return next(iter(request.inputs.values())), next(iter(request.targets.values()), None)
