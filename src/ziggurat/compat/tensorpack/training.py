"""Trainers and configurations in all of Tensorpack's ages: with ``TrainConfig`` as argument, and without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.tf import config as configs
from ziggurat.tf import data_parallel, trainers
from ziggurat.tf.inputs.base import FeedInput, InputSource
from ziggurat.tf.inputs.queue import QueueInput

__all__ = [
    "AsyncMultiGPUTrainer",
    "QueueInputTrainer",
    "SimpleTrainer",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
    "TrainConfig",
    "apply_default_prefetch",
    "launch_train_with_config",
]

TrainConfig = configs.TrainConfig


def apply_default_prefetch(input_source_or_dataflow: Any, trainer: Any, towers: Any = None) -> InputSource:
    """Return an input source for a trainer: the given one, or one over the given data flow.

    Args:
        input_source_or_dataflow: either.
        trainer: a ``SimpleTrainer`` is fed directly, any other by a queue.
        towers: not used.
    """
    if isinstance(input_source_or_dataflow, InputSource):
        return input_source_or_dataflow
    is_simple = type(trainer) in (SimpleTrainer, trainers.SimpleTrainer)
    return (FeedInput if is_simple else QueueInput)(input_source_or_dataflow)


def launch_train_with_config(config: Any, trainer: Any) -> None:
    """Set a trainer up and train, as the configuration says.

    Args:
        config: a ``TrainConfig``.
        trainer: a trainer of one cost.
    """
    if config.dataflow is not None:
        config.data, config.dataflow = apply_default_prefetch(config.dataflow, trainer), None
    configs.launch_train_with_config(config, trainer)


class WithConfig:
    """A trainer that may be made with a configuration: ``train()`` alone then trains as it says."""

    _config: Any = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        given = [*arguments, *options.values()]
        self._config = next((each for each in given if isinstance(each, TrainConfig)), None)
        rest = [each for each in arguments if not isinstance(each, TrainConfig)]
        super().__init__(*rest, **{name: each for name, each in options.items() if not isinstance(each, TrainConfig)})

    def train(self, *arguments: Any, **options: Any) -> Any:
        """Train: with the arguments of ``Trainer.train``, or as the configuration of the trainer says."""
        config, self._config = self._config, None
        if config is None or arguments or options:
            return super().train(*arguments, **options)  # pyright: ignore[reportAttributeAccessIssue]
        return launch_train_with_config(config, self)


class SimpleTrainer(WithConfig, trainers.SimpleTrainer):
    """``ziggurat.tf.SimpleTrainer``, which may be made with a ``TrainConfig``."""


class _OnDevices(WithConfig):
    def __init__(self, gpus: Any = None, *arguments: Any, **options: Any) -> None:
        given = [each for each in (gpus, options.pop("config", None)) if isinstance(each, TrainConfig)]
        if given:
            gpus = devices_of(given[0])
        # Programs pass the number of GPUs on, which may be 0: one tower on the processor then.
        super().__init__(gpus or None, *arguments, **options)
        self._config = given[0] if given else None


class SyncMultiGPUTrainerReplicated(_OnDevices, data_parallel.SyncMultiGPUTrainerReplicated):
    """``ziggurat.tf.SyncMultiGPUTrainerReplicated``, which may be made with a ``TrainConfig``."""


class SyncMultiGPUTrainerParameterServer(_OnDevices, data_parallel.SyncMultiGPUTrainerParameterServer):
    """``ziggurat.tf.SyncMultiGPUTrainerParameterServer``, which may be made with a ``TrainConfig``."""


SyncMultiGPUTrainer = SyncMultiGPUTrainerParameterServer
"""Older name of ``SyncMultiGPUTrainerParameterServer``."""


class AsyncMultiGPUTrainer(_OnDevices, data_parallel.AsyncMultiGPUTrainer):
    """``ziggurat.tf.AsyncMultiGPUTrainer``, which may be made with a ``TrainConfig``."""


class QueueInputTrainer(WithConfig, trainers.SimpleTrainer):
    """A ``SimpleTrainer`` that is fed by a queue."""


def devices_of(config: Any) -> Sequence[int] | None:
    """Return the numbers of the devices that a configuration of Tensorpack before 0.8.5 names, or None."""
    if config.tower is not None:
        return [config.tower] if isinstance(config.tower, int) else list(config.tower)
    return list(range(config.nr_tower)) if config.nr_tower else None
