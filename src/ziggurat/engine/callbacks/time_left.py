"""Estimate of the remaining training time."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable

from ziggurat.engine.callback import Callback
from ziggurat.errors import ConfigurationError
from ziggurat.events import Progress

__all__ = ["EstimatedTimeLeft"]


class EstimatedTimeLeft(Callback):
    """Says about once a second, and after each epoch, how far training is and how long it still takes.

    What it says is a ``Progress`` event. The estimate takes a typical epoch of the last ones (everything in it counts,
    validation too) for the epochs to come, and before the first is complete the mean time of a step in this attempt.
    It is measured anew in every attempt: the next one may have another machine.

    Args:
        last_k_epochs: how many epochs are looked at.
        median: take their median; their mean otherwise.
        every_s: seconds between two events within an epoch.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        last_k_epochs: int = 5,
        median: bool = True,
        *,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if last_k_epochs < 1:
            raise ConfigurationError("`last_k_epochs` must be at least 1.", received=last_k_epochs, advice="Set it so.")
        self._typical = statistics.median if median else statistics.fmean
        self._every_s = every_s
        self._clock = clock
        self._epochs_s: deque[float] = deque(maxlen=last_k_epochs)
        self._attempt_began_s = 0.0
        self._epoch_began_s: float | None = None
        self._next_s = 0.0
        self._said = (0.0, 0, 0.0, 0.0)

    def before_train(self) -> None:
        """Start the clock of the attempt."""
        self._attempt_began_s = now = self._clock()
        self._next_s = now + self._every_s
        self._epoch_began_s = None
        self._said = (now, self.trainer.timing.steps, self.trainer.timing.wait_s, self.trainer.timing.step_s)

    def before_epoch(self) -> None:
        """End the epoch before with all the work that came after its steps, and start the clock of this one."""
        now = self._clock()
        if self._epoch_began_s is not None:
            self._epochs_s.append(now - self._epoch_began_s)
        self._epoch_began_s = now

    def trigger_step(self) -> None:
        """Say how far it is, when it is time."""
        now = self._clock()
        if now >= self._next_s:
            self._say(now)

    def trigger_epoch(self) -> None:
        """Say how far it is."""
        self._say(self._clock())

    def remaining_s(self) -> float | None:
        """Return the estimate; None before the first step."""
        trainer = self.trainer
        steps_left = trainer.max_epoch * trainer.steps_per_epoch - trainer.global_step
        if self._epochs_s:
            return self._typical(self._epochs_s) * steps_left / trainer.steps_per_epoch
        if not trainer.timing.steps:
            return None
        return (self._clock() - self._attempt_began_s) / trainer.timing.steps * steps_left

    def _say(self, now: float) -> None:
        self._next_s = now + self._every_s
        trainer = self.trainer
        timing = trainer.timing
        then, steps, wait_s, step_s = self._said
        passed_s, waited_s, stepped_s = now - then, timing.wait_s - wait_s, timing.step_s - step_s
        self._said = (now, timing.steps, timing.wait_s, timing.step_s)
        trainer.monitors.put_event(
            Progress(
                time=trainer.monitors.now(),
                epoch=trainer.epoch_num,
                global_step=trainer.global_step,
                total_steps=trainer.max_epoch * trainer.steps_per_epoch,
                remaining_s=self.remaining_s(),
                steps_per_s=(timing.steps - steps) / passed_s if passed_s > 0 else None,
                data_wait_share=waited_s / (waited_s + stepped_s) if waited_s + stepped_s > 0 else None,
            )
        )
