"""Spec of a training job, version 1: every user-settable field, declared once for all interfaces."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import SerializerFunctionWrapHandler, ValidationInfo, field_validator, model_serializer, model_validator
from pydantic_core import PydanticCustomError, PydanticKnownError

from ziggurat.specs.base import Options, SpecModel, bare_text, is_stored, spec_field
from ziggurat.specs.optimizer import MomentumOptimizer, Optimizer, Schedule, StepSchedule
from ziggurat.specs.parts import (
    Augmentation,
    Checkpoints,
    Data,
    EarlyStopping,
    FineTuning,
    Loading,
    Network,
    PluginUse,
    PluginUses,
    Preprocessing,
    Validation,
)

__all__ = ["TrainSpec"]

_WRITTEN = {"preprocessing", "augmentation", "schedule", "checkpoints", "monitors"}
"""Fields that stand in every spec that a release wrote; a person writes few of them."""

_MONITORS = ("events", "tensorboard", "stats", "printer", "progress")


class TrainSpec(SpecModel):
    """What a training job was asked to do."""

    kind: Literal["train"] = "train"
    version: Literal[1] = 1

    name: str = spec_field("", title="Name", help="Name of the job; any text.", group="Job", max_length=200)
    seed: int = spec_field(
        0,
        title="Seed",
        help="Determines every random number of the job; any integer from 0.",
        group="Job",
        ge=0,
        lt=2**32,
    )
    on_stop: Literal["save", "leave"] = spec_field(
        "save",
        title="When stopped",
        help="Whether a stop request saves a checkpoint first; `save` resumes with the state and data of that step.",
        group="Job",
    )
    heartbeat_s: float = spec_field(
        1.0,
        title="Heartbeat",
        help="Seconds between heartbeats; typical: 1 to 5.",
        unit="s",
        group="Job",
        gt=0,
        le=10,
    )
    hung_after_s: float = spec_field(
        120.0,
        title="Hung after",
        help="Longest time for one step before it is reported as hung; typical: 60 to 600.",
        unit="s",
        group="Job",
        gt=0,
    )

    backend: str = spec_field(
        "auto",
        title="Backend",
        help="Framework that trains; `auto` is the first installed one that knows the network, `null` is NumPy.",
        group="Network",
        min_length=1,
    )
    backend_options: Options = spec_field(
        factory=dict,
        title="Backend options",
        help="Options of the backend, checked by it.",
        group="Network",
    )
    network: Network = spec_field(
        title="Network",
        short_form="name",
        help="Name of a standard network, or a Python file that defines `UserModel`.",
        group="Network",
    )

    task: str = spec_field(
        "auto",
        title="Task",
        help="What is learned, such as `classification`; `auto` is what the network or else the data is for.",
        group="Network",
        min_length=1,
    )
    pretrained: str | None = spec_field(
        None,
        title="Pretrained model",
        help="Initial weights: a job folder, a TensorFlow checkpoint, or `weights:NAME` of pretrained weights.",
        group="Network",
    )
    freeze: list[str] = spec_field(
        factory=list,
        title="Freeze",
        help="Patterns of variables that are not trained, such as `conv*`; empty by default.",
        group="Network",
    )
    fine_tuning: FineTuning | None = spec_field(
        None,
        title="Fine-tuning",
        help="Frozen first epochs and lower rates for a pretrained model; not set by default.",
        group="Network",
    )

    data: Data = spec_field(
        title="Data", short_form="source", help="Dataset to train on: `digits`, or a folder.", group="Data"
    )
    shuffle: bool = spec_field(
        True,
        title="Shuffle",
        help="Whether every epoch has a new order; `false` keeps the order of the data.",
        group="Data",
    )
    oversample_below: float = spec_field(
        0.0,
        title="Oversample rare classes below",
        help="Share of samples; those of classes that fewer have are seen more often, by the square root of what is "
        "missing. 0 for none; typical: 0.001 (many classes) to 0.3.",
        group="Data",
        ge=0,
        le=1,
    )
    class_weights: list[float] = spec_field(
        factory=list,
        title="Class weights",
        help="Factor of each class in the classification loss, in the order of the classes; empty for equal ones.",
        group="Data",
    )
    preprocessing: Preprocessing = spec_field(
        factory=Preprocessing,
        title="Preprocessing",
        help="Preprocessing of every image, in training and prediction.",
        group="Preprocessing",
    )
    augmentation: Augmentation = spec_field(
        factory=Augmentation,
        title="Augmentation",
        help="Random changes of the images in training.",
        group="Augmentation",
    )
    batch_size: int = spec_field(
        64,
        title="Batch size",
        help="Samples in a step, over all devices; typical: 16 to 256.",
        unit="samples",
        group="Data",
        ge=1,
    )

    loading: Loading = spec_field(
        factory=Loading,
        title="Data loading",
        help="How the images are read and decoded in training.",
        group="Data loading",
    )

    epochs: int = spec_field(
        30,
        title="Epochs",
        help="Passes over the training split; typical: 10 to 100.",
        unit="epochs",
        group="Duration",
        ge=1,
        le=1_000_000,
    )
    steps_per_epoch: int | None = spec_field(
        None,
        title="Steps per epoch",
        help="Steps in an epoch; default: the whole training split.",
        unit="steps",
        group="Duration",
        ge=1,
        le=1_000_000_000,
    )
    early_stopping: Annotated[EarlyStopping, bare_text("tag")] | None = spec_field(
        None,
        title="Early stopping",
        short_form="tag",
        help="Ends the training when a metric stops improving; not set by default.",
        group="Duration",
    )

    optimizer: Optimizer = spec_field(
        factory=MomentumOptimizer,
        title="Optimizer",
        short_form="name",
        help="Rule that turns gradients into updates.",
        group="Optimizer",
    )
    weight_decay: float = spec_field(
        0.0,
        title="Weight decay",
        help="Factor of the squared weights in the loss, halved; typical: 0 to 0.001.",
        group="Optimizer",
        ge=0,
    )
    gradient_clip: float | None = spec_field(
        None,
        title="Gradient clip",
        help="Largest global norm of the gradients; typical: 1 to 10, or not set.",
        group="Optimizer",
        gt=0,
    )
    gradient_accumulation_steps: int = spec_field(
        1,
        title="Gradient accumulation",
        help="Batches whose gradients are averaged for one update; typical: 1 to 8.",
        unit="batches",
        group="Optimizer",
        ge=1,
    )
    ema_decay: float | None = spec_field(
        None,
        title="Weight averaging (EMA)",
        help="Decay of the weights' running averages, which then predict; typical: 0.99 to 0.9999, or not set.",
        group="Optimizer",
        gt=0,
        lt=1,
    )
    precision: Literal["float32", "bf16", "fp16"] = spec_field(
        "float32",
        title="Precision",
        help="Number format of the network; `float32` always works.",
        group="Optimizer",
    )

    learning_rate: float = spec_field(
        0.01,
        title="Learning rate",
        help="Base rate that the schedule starts from; typical: 0.0001 to 0.1.",
        group="Learning rate",
        ge=0,  # `_check_learning_rate` refuses 0 in new specs
    )
    schedule: Schedule = spec_field(
        factory=StepSchedule,
        title="Schedule",
        short_form="policy",
        help="Learning-rate schedule over the training.",
        group="Learning rate",
    )

    validation: Validation = spec_field(
        factory=Validation, title="Validation", help="When the validation split is evaluated.", group="Validation"
    )
    checkpoints: Checkpoints = spec_field(
        factory=Checkpoints,
        title="Checkpoints",
        help="When checkpoints are written, and which are kept.",
        group="Checkpoints",
    )

    monitors: PluginUses = spec_field(
        factory=lambda: [PluginUse(name=name) for name in _MONITORS],
        title="Monitors",
        help="Destinations of the metrics, in order; the studio reads `events`.",
        group="Callbacks and monitors",
    )
    log_every_steps: int | None = spec_field(
        None,
        title="Log every (steps)",
        help="Steps between points of the training curves; default: every step at first, then ever fewer.",
        unit="steps",
        group="Callbacks and monitors",
        ge=1,
    )
    machine_load_s: float = spec_field(
        2.0,
        title="Machine load every",
        help="Seconds between samples of CPU, memory, GPU and disk load; typical: 1 to 10, 0 for none.",
        unit="s",
        group="Callbacks and monitors",
        ge=0,
    )
    sample_predictions: bool = spec_field(
        True,
        title="Sample predictions",
        help="Whether predictions for up to 9 validation samples are kept after each validation.",
        group="Validation",
    )
    callbacks: PluginUses = spec_field(
        factory=list, title="Callbacks", help="Additional callbacks, in order.", group="Callbacks and monitors"
    )

    devices: list[str] = spec_field(
        factory=list,
        title="Devices",
        help="One tower on each, such as `cpu:0`; if empty, one GPU if there is one, else the CPU.",
        group="Devices",
    )
    nodes: int = spec_field(
        1,
        title="Nodes",
        help="Machines of a Ray or Slurm cluster that train together on PyTorch, each process on an equal part of "
        "every batch; default 1.",
        unit="nodes",
        group="Devices",
        ge=1,
        le=64,
    )
    gpus_per_node: int = spec_field(
        0,
        title="GPUs per node",
        help="With several nodes: GPUs of each, with a process for each; 0 for one process on the CPU of each node.",
        group="Devices",
        ge=0,
        le=64,
    )
    threads: int | None = spec_field(
        None,
        title="Threads",
        help="CPU threads of the network's operations, without those that load data; chosen at the first start by "
        "default, 1 for a small network. A resume keeps them.",
        unit="threads",
        group="Devices",
        ge=1,
        le=256,
    )

    @model_validator(mode="before")
    @classmethod
    def _loads_as_it_began(cls, content: Any, info: ValidationInfo) -> Any:
        # A job of 0.1, which wrote every field that it knew, goes on with the pixels that it had.
        if is_stored(info) and isinstance(content, dict) and "loading" not in content and content.keys() >= _WRITTEN:
            return {**content, "loading": {"decode": "picture"}}
        return content

    @model_serializer(mode="wrap")
    def _without_later_fields(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # A spec without them is byte for byte what it was before they existed, and releases before them can read it.
        content: dict[str, Any] = whole(self)
        for name in ("fine_tuning", "threads"):
            if content.get(name, ...) is None:
                del content[name]
        for name, value in (("nodes", 1), ("gpus_per_node", 0)):
            if content.get(name) == value:
                del content[name]
        return content

    @property
    def towers(self) -> int:
        """Devices that share each batch, over all nodes; 1 where the choice is left open."""
        return self.nodes * max(1, self.gpus_per_node) if self.nodes > 1 else max(1, len(self.devices))

    @field_validator("learning_rate")
    @classmethod
    def _check_learning_rate(cls, value: float, info: ValidationInfo) -> float:
        if value == 0 and not is_stored(info):  # 0.1 took it, often for a decimal comma
            raise PydanticKnownError("greater_than", {"gt": 0})
        return value

    @field_validator("devices")
    @classmethod
    def _name_gpus_alike(cls, value: list[str]) -> list[str]:
        # PyTorch's name of a GPU; the queue counts those that are called gpu:N.
        return [f"gpu{name[4:]}" if name == "cuda" or name.startswith("cuda:") else name for name in value]

    @model_validator(mode="after")
    def _threads_are_said_once(self) -> TrainSpec:
        if self.threads is not None and "intra_threads" in self.backend_options:
            raise PydanticCustomError(
                "rule",
                "rule",
                {
                    "field": "threads",
                    "rule": "must be left out beside `intra_threads` of the backend options",
                    "received": self.threads,
                    "advice": "Give one of them.",
                },
            )
        return self

    @model_validator(mode="after")
    def _devices_are_said_once(self) -> TrainSpec:
        if self.nodes > 1 and self.devices:
            rule = {
                "field": "devices",
                "rule": f"must be left out of a training on {self.nodes} nodes",
                "received": ", ".join(self.devices),
                "advice": "Give `gpus_per_node`; the cluster chooses which.",
            }
            raise PydanticCustomError("rule", "rule", rule)
        if self.nodes == 1 and self.gpus_per_node:
            rule = {
                "field": "gpus_per_node",
                "rule": "must be left out of a training on one node",
                "received": self.gpus_per_node,
                "advice": "Name its `devices`, such as gpu:0 and gpu:1, or give `nodes`.",
            }
            raise PydanticCustomError("rule", "rule", rule)
        return self

    @model_validator(mode="after")
    def _batches_divide(self) -> TrainSpec:
        towers = self.towers
        kind = "towers" if self.nodes == 1 else "processes"
        if towers > 1 and self.batch_size % towers:
            below = self.batch_size // towers * towers
            near = [str(size) for size in (below, below + towers) if size]
            raise PydanticCustomError(
                "rule",
                "rule",
                {
                    "field": "batch_size",
                    "rule": f"must be divisible by the {towers} {kind}",
                    "received": self.batch_size,
                    "advice": f"Use {' or '.join(near)}.",
                },
            )
        return self
