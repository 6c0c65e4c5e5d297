"""Estimates for a training: memory, disk and a rough time from the network, time from test batches and earlier jobs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.specs import TrainSpec

__all__ = [
    "SLOTS",
    "EarlierJobs",
    "NetworkFacts",
    "NetworkSize",
    "WholeTime",
    "checkpoints_kept",
    "checkpoints_saved",
    "earlier_jobs",
    "facts_of",
    "network_size",
    "rough_time_s",
    "whole_time",
    "with_times",
]

SLOTS: Final[Mapping[str, int]] = {
    "sgd": 0,
    "momentum": 1,
    "adam": 2,
    "adamw": 2,
    "rmsprop": 2,
    "adagrad": 1,
    "adagrad_da": 2,
    "adadelta": 2,
    "ftrl": 2,
}
"""Optimizer → numbers that it keeps for each parameter."""

_NUMBER_BYTES: Final = 4

_WITH_GRADIENTS: Final = 1.5
"""Memory of the layers with their gradients and the scratch memory of operations, in multiples of the layers: not all
gradients are held at a time. It is 1.4 in test batches of a small and a deep convolutional network in both frameworks.
"""

_FORWARD_AND_BACKWARD: Final = 3
"""Operations of a step in multiples of those of a prediction: the backward pass has two products for each one."""

_EFFICIENCY: Final = 0.35
"""Share of the speed of large matrix products that convolutional networks reach on a CPU; 0.3 to 0.5 were measured."""

_NUMBER_S: Final = 1.8e-9
"""Seconds of a number that the operations give for a sample, in a prediction: small and depthwise convolutions wait for
memory (Williams, Waterman and Patterson, "Roofline", CACM 52, 2009). EfficientNet-Lite0 took 39 to 48 ms for an image
of 224 px.
"""

_FIT_S: Final = 0.015
"""Seconds for a sample of the fit of a last layer; 0.01 to 0.02 were measured, of 300 to 1,500 samples."""

_STEP_S: Final = 0.005
_START_S: Final = 5.0
"""Seconds of a step beside its operations, and from the start of a process to its first step."""

_NEWEST: Final = 5


@dataclass(frozen=True, kw_only=True)
class NetworkSize:
    """How large a network is while it is trained.

    Args:
        parameters: numbers that are trained.
        weights_bytes: of all variables.
        slots_bytes: that the optimizer keeps, and the averages of the weights.
        gradients_bytes: of the parameters.
        layers_bytes: what the operations give for the samples that one device gets in a step.
    """

    parameters: int
    weights_bytes: int
    slots_bytes: int
    gradients_bytes: int
    layers_bytes: int

    @property
    def training_bytes(self) -> int:
        """What one device needs, besides the framework."""
        layers_bytes = int(_WITH_GRADIENTS * self.layers_bytes)
        return self.weights_bytes + self.slots_bytes + self.gradients_bytes + layers_bytes

    @property
    def checkpoint_bytes(self) -> int:
        """Of one checkpoint."""
        return self.weights_bytes + self.slots_bytes


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """What decides how large a network is in training; it follows from its text, its input and its classes.

    Args:
        parameters: numbers that are trained.
        variables: numbers in all variables.
        per_sample: numbers that the operations give for one sample.
        outputs: numbers that it gives for one sample; None where they are no row of numbers.
        multiply_adds: of a prediction for one sample; 0 if unknown.
    """

    parameters: int
    variables: int
    per_sample: int
    outputs: int | None = None
    multiply_adds: int = 0


def facts_of(described: Mapping[str, Any]) -> NetworkFacts:
    """Return the facts of a network that was described; see ``ziggurat.engine.capabilities.SupportsDescribe``."""
    shapes = [shape for shape in described.get("outputs", ()) if shape]
    return NetworkFacts(
        parameters=int(described["parameters"]),
        variables=sum(int(each["count"]) for each in described["variables"]),
        per_sample=sum(_numbers(each["shape"]) for each in described["operations"]),
        outputs=shapes[0][-1] if shapes else None,
        multiply_adds=int(described.get("multiply_adds", 0)),
    )


def network_size(facts: NetworkFacts, spec: TrainSpec) -> NetworkSize:
    """Return the size of a network while it is trained by a spec."""
    samples = math.ceil(spec.batch_size / spec.towers)
    bytes_each = _NUMBER_BYTES if spec.precision == "float32" else _NUMBER_BYTES // 2
    return NetworkSize(
        parameters=facts.parameters,
        weights_bytes=_NUMBER_BYTES * facts.variables,
        slots_bytes=_NUMBER_BYTES * facts.parameters * (SLOTS[spec.optimizer.name] + (spec.ema_decay is not None)),
        gradients_bytes=_NUMBER_BYTES * facts.parameters * (2 if spec.gradient_accumulation_steps > 1 else 1),
        layers_bytes=bytes_each * facts.per_sample * samples,
    )


def rough_time_s(
    facts: NetworkFacts, spec: TrainSpec, steps: int, validated: int, multiply_adds_per_s: float
) -> float | None:
    """Return how long a training takes on the CPU, from its operations; it may well be half or twice as long.

    Args:
        facts: of the network.
        spec: of the training.
        steps: of the whole training.
        validated: samples of a validation; 0 for none.
        multiply_adds_per_s: that this machine does in large matrix products.

    Returns:
        Seconds; None if the operations are unknown.
    """
    if not facts.multiply_adds:
        return None
    trained = steps * spec.batch_size * spec.gradient_accumulation_steps
    passes = _FORWARD_AND_BACKWARD * trained - (_FORWARD_AND_BACKWARD - 1) * trained / spec.epochs * _fits_head(spec)
    samples = passes + _validations(spec) * validated
    sample_s = max(facts.multiply_adds / (_EFFICIENCY * multiply_adds_per_s), facts.per_sample * _NUMBER_S)
    return _START_S + steps * _STEP_S + samples * sample_s + _fit_s(spec, trained / spec.epochs)


def _fit_s(spec: TrainSpec, epoch_samples: float) -> float:
    """Return the seconds in which the last layer is fitted, once the features are there; 0 where it is not."""
    return _FIT_S * epoch_samples * _fits_head(spec)


def _fits_head(spec: TrainSpec) -> bool:
    """Return whether the first epoch only predicts, and fits the last layer to that."""
    return spec.fine_tuning is not None and spec.fine_tuning.fit_head


def _validations(spec: TrainSpec) -> int:
    """Return how often a training validates: the untrained network, too, unless its first epoch fits a layer."""
    every = spec.validation.every_epochs
    return math.floor(spec.epochs / every) + (not _fits_head(spec)) if every else 0


def checkpoints_saved(spec: TrainSpec, steps: int | None) -> int:
    """Return how many checkpoints a training writes, as far as can be known before it."""
    rule = spec.checkpoints
    saves = math.ceil(spec.epochs / rule.every_epochs) if rule.every_epochs else 1
    if rule.every_steps is not None and steps is not None:
        saves += steps // rule.every_steps
    return max(1, saves)


def checkpoints_kept(spec: TrainSpec, steps: int | None) -> int:
    """Return how many checkpoints a training keeps at its end, as far as can be known before it."""
    rule, saves = spec.checkpoints, checkpoints_saved(spec, steps)
    if rule.keep_last is None:
        return saves
    beside = 0 if rule.best_rule is None else 1  # the best one, where it is none of the newest
    return max(1, min(saves, rule.keep_last + beside))


@dataclass(frozen=True, kw_only=True)
class WholeTime:
    """How long a training takes, by a test batch.

    Args:
        steps_per_epoch: steps of an epoch.
        epoch_s: seconds of an epoch, validation and checkpoint included.
        total_s: of the whole process, its start included.
    """

    steps_per_epoch: int
    epoch_s: float
    total_s: float


def whole_time(measured: Mapping[str, Any], spec: TrainSpec) -> WholeTime:
    """Return how long a training takes.

    Args:
        measured: what a test batch found; see ``ziggurat.worker.commands.batch_trial``.
        spec: of the training.
    """
    batch = spec.batch_size * spec.gradient_accumulation_steps
    steps_per_epoch = spec.steps_per_epoch or measured["sizes"]["train"] // batch or 1
    steps = spec.epochs * steps_per_epoch
    validation_s = measured["validation_s"] or 0.0
    saves_s = checkpoints_saved(spec, steps) * measured["checkpoint_s"]
    # A step of the first epoch that only predicts has no backward pass.
    spared = steps_per_epoch * (1 - 1 / _FORWARD_AND_BACKWARD) * _fits_head(spec)
    steps_s = (steps - spared) * measured["step_s"]
    work_s = steps_s + spec.epochs * measured["epoch_end_s"] + _validations(spec) * validation_s + saves_s
    work_s += _fit_s(spec, steps_per_epoch * batch)
    return WholeTime(
        steps_per_epoch=steps_per_epoch, epoch_s=work_s / spec.epochs, total_s=measured["start_s"] + work_s
    )


def with_times(measured: Mapping[str, Any], spec: TrainSpec) -> dict[str, Any]:
    """Return what a test batch found, with ``steps_per_epoch``, ``epoch_s`` and ``total_s`` of the whole training."""
    return {**measured, **asdict(whole_time(measured, spec))}


@dataclass(frozen=True, kw_only=True)
class EarlierJobs:
    """What trainings like this one took.

    Args:
        count: of them; at most the five newest.
        samples_per_s: their median, start, validation and checkpoints included.
        data_wait_share: the median of their share of time that they waited for data; None if unknown.
    """

    count: int
    samples_per_s: float
    data_wait_share: float | None


def earlier_jobs(jobs: Iterable[Job], spec: TrainSpec, network: str, epoch_samples: int | None) -> EarlierJobs | None:
    """Return what is known from trainings of the same network on the same data, or on as much of it; None where none.

    Args:
        jobs: that are done, the newest first.
        spec: of the training that is asked for.
        network: its name, as jobs have it.
        epoch_samples: samples in one of its epochs; None if unknown.
    """
    speeds: list[float] = []
    waits: list[float] = []
    for job in jobs:
        speed = _samples_per_s(job) if _is_like(job, spec, network, epoch_samples) else None
        if speed is None:
            continue
        speeds.append(speed)
        waits += [] if job.data_wait_share is None else [job.data_wait_share]
        if len(speeds) == _NEWEST:
            break
    if not speeds:
        return None
    wait = statistics.median(waits) if waits else None
    return EarlierJobs(count=len(speeds), samples_per_s=statistics.median(speeds), data_wait_share=wait)


def _is_like(job: Job, spec: TrainSpec, network: str, epoch_samples: int | None) -> bool:
    content = job.spec
    if job.network != network or job.framework != spec.backend or list(content.get("devices", [])) != spec.devices:
        return False
    if (content.get("nodes", 1), content.get("gpus_per_node", 0)) != (spec.nodes, spec.gpus_per_node):
        return False
    if _passes(content, job.max_epoch) != (_fits_head(spec), _fits_head(spec) and spec.epochs == 1):
        return False
    if _source(content.get("data")) == spec.data.source:
        return True
    batch = _batch(content)
    if epoch_samples is None or not job.max_epoch:
        return False
    return abs(job.total_steps / job.max_epoch * batch - epoch_samples) < max(
        batch, spec.batch_size * spec.gradient_accumulation_steps
    )


def _passes(content: Mapping[str, Any], epochs: int) -> tuple[bool, bool]:
    """Return whether a job fitted its last layer, and whether that was all: its samples took less time then."""
    tuned = content.get("fine_tuning")
    fits = isinstance(tuned, Mapping) and bool(tuned.get("fit_head"))
    return fits, fits and epochs == 1


def _samples_per_s(job: Job) -> float | None:
    batch = _batch(job.spec)
    if job.attempt == 1 and job.started is not None and job.ended is not None and job.ended > job.started:
        speed = job.global_step * batch / (job.ended - job.started)
        return speed or None
    return job.steps_per_s * batch if job.steps_per_s else None


def _batch(content: Mapping[str, Any]) -> int:
    return int(content.get("batch_size", 1)) * int(content.get("gradient_accumulation_steps", 1))


def _source(data: Any) -> Any:
    return data.get("source") if isinstance(data, Mapping) else data


def _numbers(shape: Sequence[int | None] | None) -> int:
    """Return the numbers that an operation gives for one sample; 0 where it does not give some for each."""
    if not shape or shape[0] is not None:
        return 0
    return math.prod(side or 1 for side in shape[1:])
