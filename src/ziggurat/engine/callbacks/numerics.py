"""Checks for NaN and infinite values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.batches import batch_keys, plain_array
from ziggurat.engine.callbacks.saving import newest_checkpoint
from ziggurat.errors import NonFiniteError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["CheckNumerics", "is_finite", "non_finite_error"]


class CheckNumerics(Callback):
    """Ends the training with ``NonFiniteError`` when a value is NaN or infinite.

    Args:
        names: values of the program to watch; None for its weights and everything else of its state.
        run_as_trigger: look at the end of each epoch: at the last step's values, or at the weights.
        run_step: look after every step. For weights this copies them all, every step.

    Raises:
        NonFiniteError: from the training; ``details`` has step, tag, the keys of the batch where it carries any, and
            the last good checkpoint.
    """

    def __init__(self, names: Sequence[str] | None = None, run_as_trigger: bool = True, run_step: bool = False) -> None:
        self._names = None if names is None else tuple(names)
        self._run_as_trigger = run_as_trigger
        self._run_step = run_step

    def hooks(self) -> frozenset[str]:
        """Leave out what was not asked for."""
        if self._names is not None:
            return super().hooks() - {"trigger_step", "trigger_epoch"}
        off = set() if self._run_step else {"trigger_step"}
        return super().hooks() - off - {"before_run", "after_run"}

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names or ()

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step, or of the last one of the epoch."""
        is_last = self.trainer.local_step + 1 == self.trainer.steps_per_epoch
        return self._names or () if self._run_step or (self._run_as_trigger and is_last) else ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Look at the values of the step."""
        for name in self._names or ():
            if name in values and not is_finite(values[name]):
                raise non_finite_error(self.trainer, name)

    def trigger_step(self) -> None:
        """Look at the weights after a step."""
        self._check_state()

    def trigger(self) -> None:
        """Look at the weights."""
        if self._run_as_trigger:
            self._check_state()

    def _check_state(self) -> None:
        for name, array in self.trainer.program.state().items():
            if not is_finite(array):
                raise non_finite_error(self.trainer, name)


def is_finite(value: Any) -> bool:
    """Return whether a number, or every number of an array, is finite; what is no number counts as finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    array = plain_array(value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def non_finite_error(trainer: Trainer, tag: str, details: Mapping[str, Any] | None = None) -> NonFiniteError:
    """Return the error for a value of the newest step.

    Args:
        trainer: whose step.
        tag: name of the value.
        details: further values for machines.
    """
    keys, checkpoint = batch_keys(trainer.batch), newest_checkpoint(trainer)
    resume = f" The last checkpoint is {checkpoint}." if checkpoint else ""
    return NonFiniteError(
        f"`{tag}` must be finite.",
        received=f"NaN or infinity after step {trainer.global_step} (epoch {trainer.epoch_num})",
        advice=f"Try decreasing the learning rate, and look at the last batches.{resume}",
        details={"step": trainer.global_step, "tag": tag, "keys": keys, "checkpoint": checkpoint, **(details or {})},
    )
