"""Trainers over several towers of one process: one replica of the model a device, each with a batch of its own.

The total batch is the batch of the input source times the number of towers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError
from ziggurat.tf.inputs.base import InputSource
from ziggurat.tf.multi_tower import (
    AsyncMultiGPUBuilder,
    DataParallelBuilder,
    SyncMultiGPUParameterServerBuilder,
    SyncMultiGPUReplicatedBuilder,
)
from ziggurat.tf.sessions import visible_gpus
from ziggurat.tf.tower import TowerFunc
from ziggurat.tf.trainers import SimpleTrainer, SingleCostTrainer

__all__ = [
    "AsyncMultiGPUTrainer",
    "MultiTowerTrainer",
    "QueueInputTrainer",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
]

QueueInputTrainer = SimpleTrainer
"""Tensorpack's older name of ``SimpleTrainer``."""


class MultiTowerTrainer(SingleCostTrainer):
    """Base of trainers over several towers.

    Args:
        builder: builds towers and step.
    """

    may_use_own_thread: ClassVar[bool] = False  # towers run side by side

    def __init__(self, builder: DataParallelBuilder) -> None:
        super().__init__()
        self.builder = builder
        self.devices = list(builder.devices)
        """The device of each tower."""

    def _setup_graph(
        self, source: InputSource, get_cost_fn: TowerFunc, get_opt_fn: Callable[[], Any]
    ) -> Sequence[Callback]:
        build_towers: Any = self.builder.call_for_each_tower
        pairs = build_towers(lambda: self.get_grads(source, get_cost_fn, get_opt_fn))
        return self._take(self.builder.build(pairs, get_opt_fn))

    def _take(self, built: Any) -> Sequence[Callback]:
        """Take what the builder returned; return the callbacks that it needs."""
        self.train_op = built
        return []


class SyncMultiGPUTrainerParameterServer(MultiTowerTrainer):
    """Trains towers that share their variables; each step applies the mean of the towers' gradients.

    Args:
        gpus: how many GPUs, or their numbers; all where it is None. On a machine without GPU the towers are on devices
            of the processor.
        ps_device: where variables are: ``cpu``, or ``gpu``: spread over the towers' devices. By default ``gpu`` for one
            or two towers, else ``cpu``.
    """

    def __init__(self, gpus: int | Sequence[int] | None = None, ps_device: str | None = None) -> None:
        super().__init__(SyncMultiGPUParameterServerBuilder(tower_numbers(gpus), ps_device))


class SyncMultiGPUTrainerReplicated(MultiTowerTrainer):
    """Trains towers with variables of their own; each step applies the mean of the towers' gradients to all of them.

    The first tower's variables are the model: checkpoints and predictors have them. They are given to the other towers
    when they were initialized or loaded, and at the end of each epoch, those that are not trained included.

    Args:
        gpus: how many GPUs, or their numbers; all where it is None. On a machine without GPU the towers are on devices
            of the processor.
        average: apply the mean of the gradients; their sum otherwise.
        mode: where gradients are added up, see ``SyncMultiGPUReplicatedBuilder``.
    """

    BROADCAST_EVERY_EPOCH: ClassVar[bool] = True
    """Whether the other towers get the first tower's variables at the end of each epoch."""

    def __init__(self, gpus: int | Sequence[int] | None = None, average: bool = True, mode: str | None = None) -> None:
        super().__init__(SyncMultiGPUReplicatedBuilder(tower_numbers(gpus), average, mode))

    def _take(self, built: Any) -> Sequence[Callback]:
        self.train_op, sync = built
        return [_GiveVariables(sync, every_epoch=self.BROADCAST_EVERY_EPOCH)]


class AsyncMultiGPUTrainer(MultiTowerTrainer):
    """Trains towers that share their variables; each tower applies its own gradients.

    Two trainings differ by what was applied first: use a synchronous trainer where they must not.

    Args:
        gpus: how many GPUs, or their numbers; all where it is None. On a machine without GPU the towers are on devices
            of the processor.
        scale_gradient: divide the gradients by the number of towers.
    """

    def __init__(self, gpus: int | Sequence[int] | None = None, scale_gradient: bool = True) -> None:
        super().__init__(AsyncMultiGPUBuilder(tower_numbers(gpus), scale_gradient))


def SyncMultiGPUTrainer(  # noqa: N802 - Tensorpack's name
    gpus: int | Sequence[int] | None = None,
) -> SyncMultiGPUTrainerParameterServer:
    """Return a ``SyncMultiGPUTrainerParameterServer`` with its variables on the processor.

    Args:
        gpus: how many GPUs, or their numbers; all where it is None.
    """
    return SyncMultiGPUTrainerParameterServer(gpus, ps_device="cpu")


def tower_numbers(gpus: int | Sequence[int] | None) -> list[int]:
    """Return the number of each tower's GPU.

    Args:
        gpus: how many, or the numbers; None for all that are visible, or one tower where there is none.
    """
    if gpus is None:
        return list(range(max(1, len(visible_gpus()))))
    if isinstance(gpus, int):
        if gpus < 1:
            raise ConfigurationError("There is at least one tower.", received=gpus, advice="Give a number from 1 on.")
        return list(range(gpus))
    return [int(number) for number in gpus]


class _GiveVariables(Callback):
    """Gives the first tower's variables to the others: after they were initialized or loaded, and after each epoch.

    Args:
        operation: does it.
        every_epoch: whether it is done after each epoch.
    """

    trainer: Any  # pyright: ignore[reportIncompatibleVariableOverride]

    chief_only = False

    def __init__(self, operation: Any, *, every_epoch: bool) -> None:
        self._operation = operation
        self._every_epoch = every_epoch

    def setup_graph(self) -> None:
        """Let the program do it once."""
        self.trainer.program.run_after_init(self._operation)

    def trigger_epoch(self) -> None:
        """Do it again."""
        if self._every_epoch:
            self.trainer.sess.run(self._operation)
