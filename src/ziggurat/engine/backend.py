"""Backend interface: how a worker gets a framework's program without either depending on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ziggurat.engine.program import Program

__all__ = ["Backend", "ProgramRequest"]


@dataclass(frozen=True, kw_only=True)
class ProgramRequest:
    """What a program is made of, in plain values.

    Args:
        network: name in the zoo, or path of a network file; empty for the backend's own default.
        network_text: content of the network file; None for a name in the zoo.
        input_shape: (H, W, C) of a sample after all preprocessing, or another shape for other data.
        classes: number of classes; None where the task has none.
        labels: ``class`` for class numbers (N), ``array`` for arrays (N, …), ``none``.
        label_shape: shape of one label array.
        class_weights: factor of each class in the classification loss; empty for equal ones.
        batch_size: samples in a step over all towers.
        optimizer: name of the optimizer.
        optimizer_options: its parameters.
        learning_rate: the first learning rate.
        weight_decay: factor of the squared weights in the cost, halved.
        gradient_clip: largest global norm of the gradients; None for no limit.
        accumulate: batches whose gradients are averaged for one step of the optimizer.
        average_weights: decay of the averages of the weights, which everything but a training step computes with; None
            for no averages. ``state()`` names an average ``ziggurat/averages/`` and the name of its weight.
        precision: ``float32``, ``bf16`` or ``fp16``.
        devices: names of devices; empty for the backend's choice.
        freeze: patterns (``conv*``) of variable names that are not trained.
        pretrained: variable name → array to start from; None to start from fresh weights.
        seed: of first weights, dropout and everything else that is drawn in the program.
        options: what only this backend knows; it checks them.
    """

    network: str = ""
    network_text: str | None = None
    input_shape: tuple[int, ...] = ()
    classes: int | None = None
    labels: str = "class"
    label_shape: tuple[int, ...] = ()
    class_weights: tuple[float, ...] = ()
    batch_size: int = 1
    optimizer: str = "sgd"
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    gradient_clip: float | None = None
    accumulate: int = 1
    average_weights: float | None = None
    precision: str = "float32"
    devices: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    pretrained: Mapping[str, np.ndarray] | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


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
