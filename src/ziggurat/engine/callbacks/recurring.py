"""Owns the base of callbacks that take their own period: every so many steps or epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["Period", "Recurring"]


class Period:
    """When it is time: every k steps, every k epochs, or both.

    Args:
        every_k_steps: k, counted by ``global_step``; None for never.
        every_k_epochs: k, counted by ``epoch_num``; None for never.

    Raises:
        ConfigurationError: where a k is below 1.
    """

    def __init__(self, every_k_steps: int | None, every_k_epochs: int | None) -> None:
        for name, value in (("every_k_steps", every_k_steps), ("every_k_epochs", every_k_epochs)):
            if value is not None and value < 1:
                raise ConfigurationError(
                    f"`{name}` must be at least 1, or None for never.", received=value, advice="Set it so."
                )
        self.every_k_steps = every_k_steps
        self.every_k_epochs = every_k_epochs

    def is_step_due(self, trainer: Trainer) -> bool:
        """Return whether the newest step is one; not the last step of an epoch that is due itself: once is enough."""
        k = self.every_k_steps
        if k is None or trainer.global_step % k:
            return False
        return trainer.local_step + 1 < trainer.steps_per_epoch or not self.is_epoch_due(trainer)

    def is_epoch_due(self, trainer: Trainer) -> bool:
        """Return whether the newest epoch is one."""
        k = self.every_k_epochs
        return k is not None and trainer.epoch_num % k == 0

    def idle_hooks(self) -> frozenset[str]:
        """Return the hooks that the period has no use for."""
        steps = set() if self.every_k_steps else {"trigger_step"}
        epochs = set() if self.every_k_epochs else {"trigger_epoch"}
        return frozenset(steps | epochs)


class Recurring(Callback):
    """Calls ``trigger()`` every k steps and every k epochs.

    Args:
        every_k_steps: also within an epoch; None for epochs only.
        every_k_epochs: at the end of every k-th epoch; None for steps only.
    """

    def __init__(self, *, every_k_steps: int | None = None, every_k_epochs: int | None = 1) -> None:
        self.period = Period(every_k_steps, every_k_epochs)

    def hooks(self) -> frozenset[str]:
        """Leave out the hooks that the period has no use for."""
        return super().hooks() - self.period.idle_hooks()

    def trigger_step(self) -> None:
        """Act where this step is due."""
        if self.period.is_step_due(self.trainer):
            self.trigger()

    def trigger_epoch(self) -> None:
        """Act where this epoch is due."""
        if self.period.is_epoch_due(self.trainer):
            self.trigger()
