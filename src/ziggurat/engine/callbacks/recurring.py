"""Base of callbacks with their own period: every k steps or epochs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["Period", "Recurring"]

_TOLERANCE = 1e-9
"""A multiple that binary fractions miss by a hair is reached all the same."""


class Period:
    """When it is time: every k steps, every k epochs, or both.

    Args:
        every_k_steps: k, counted by ``global_step``; None for never.
        every_k_epochs: k, counted by ``epoch_num``; None for never. It may be a fraction: 0.5 is twice in each epoch,
            after the step that completes the half and at the end.

    Raises:
        ConfigurationError: where a number of steps is below 1, or of epochs not above 0.
    """

    def __init__(self, every_k_steps: int | None, every_k_epochs: float | None) -> None:
        rules = (
            ("every_k_steps", every_k_steps, "at least 1", every_k_steps is None or every_k_steps >= 1),
            ("every_k_epochs", every_k_epochs, "above 0", every_k_epochs is None or every_k_epochs > 0),
        )
        for name, value, rule, fits in rules:
            if not fits:
                raise ConfigurationError(
                    f"`{name}` must be {rule}, or None for never.", received=value, advice="Set it so."
                )
        self.every_k_steps = every_k_steps
        self.every_k_epochs = every_k_epochs

    def is_step_due(self, trainer: Trainer) -> bool:
        """Return whether the newest step is one; not the last step of an epoch that is due itself: once is enough."""
        k = self.every_k_steps
        is_multiple = k is not None and trainer.global_step % k == 0
        if trainer.local_step + 1 == trainer.steps_per_epoch:
            return is_multiple and not self.is_epoch_due(trainer)
        return is_multiple or self._completes_a_part(trainer.global_step, trainer.steps_per_epoch)

    def is_epoch_due(self, trainer: Trainer) -> bool:
        """Return whether the newest epoch is one."""
        k = self.every_k_epochs
        if k is None or k == int(k):
            return k is not None and trainer.epoch_num % k == 0
        return self._completes_a_part(trainer.epoch_num * trainer.steps_per_epoch, trainer.steps_per_epoch)

    @property
    def counts_steps(self) -> bool:
        """Whether a step within an epoch can be due."""
        k = self.every_k_epochs
        return bool(self.every_k_steps) or (k is not None and k != int(k))

    def _completes_a_part(self, step: int, steps_per_epoch: int) -> bool:
        """Return whether ``step`` is the first at or behind a multiple of a fraction of epochs."""
        k = self.every_k_epochs
        if k is None or k == int(k):
            return False
        size = k * steps_per_epoch
        return math.floor(step / size + _TOLERANCE) > math.floor((step - 1) / size + _TOLERANCE)

    def idle_hooks(self) -> frozenset[str]:
        """Return the hooks that the period has no use for."""
        steps = set() if self.counts_steps else {"trigger_step"}
        epochs = set() if self.every_k_epochs else {"trigger_epoch"}
        return frozenset(steps | epochs)


class Recurring(Callback):
    """Calls ``trigger()`` every k steps and every k epochs.

    Args:
        every_k_steps: also within an epoch; None for epochs only.
        every_k_epochs: at the end of every k-th epoch; None for steps only.
    """

    def __init__(self, *, every_k_steps: int | None = None, every_k_epochs: float | None = 1) -> None:
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
