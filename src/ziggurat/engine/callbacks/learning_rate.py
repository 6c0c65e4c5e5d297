"""Learning-rate callback driven by a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.hyperparameters import ProgramParam
from ziggurat.engine.callbacks.setters import HyperParamSetter, report_change, setters_of
from ziggurat.engine.monitors.binding import innermost
from ziggurat.errors import ConfigurationError
from ziggurat.schedules.registry import make_schedule

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["LearningRateSchedule", "schedules_of"]


class LearningRateSchedule(Callback):
    """Sets a hyperparameter to ``base * schedule(global_step / total_steps)`` for every step.

    The rate depends on the number of the step only, so a resumed training goes on exactly. A change is an event where
    the rate stood still before; a rate that changes with every step is reported once an epoch. What a person wrote
    into ``hyper.txt`` holds as long as it stands there; the next step after that has the rate of the schedule again.

    Args:
        schedule: a schedule, any function from progress in [0, 1] to a factor, or a name of ``SCHEDULES``.
        base: the base rate.
        hyperparameter: its name in the program.
        every: set it for every ``step``, or for every ``epoch`` by its first step.
    """

    def __init__(
        self,
        schedule: Callable[[float], float] | str,
        base: float,
        hyperparameter: str = "learning_rate",
        every: Literal["step", "epoch"] = "step",
    ) -> None:
        if every not in ("step", "epoch"):
            raise ConfigurationError("`every` must be `step` or `epoch`.", received=every, advice="Choose one of them.")
        self._schedule = make_schedule(schedule) if isinstance(schedule, str) else schedule
        self._base = base
        self._param = ProgramParam(hyperparameter)
        self._by_epoch = every == "epoch"
        self._rate = float("nan")
        self._reported = 0.0
        self._changed_at = -2
        self._total_steps = 1
        self._others: list[HyperParamSetter] = []

    @property
    def hyperparameter(self) -> str:
        """Name of what it sets."""
        return self._param.readable_name

    def hooks(self) -> frozenset[str]:
        """Take the hook of steps or that of epochs."""
        return super().hooks() - {"trigger_step" if self._by_epoch else "before_epoch"}

    def rate_at(self, step: int) -> float:
        """Return the rate of the step that comes after ``step`` steps; there from ``before_train`` on."""
        return self._base * self._schedule(min(step / self._total_steps, 1.0))

    def setup_graph(self) -> None:
        """Find the hyperparameter, so that a wrong name is an error before any work is done."""
        self._param.bind(self.trainer)

    def before_train(self) -> None:
        """Set the rate of the first step of this attempt."""
        self._total_steps = self.trainer.max_epoch * self.trainer.steps_per_epoch
        self._others = setters_of(self.trainer, self._param.readable_name)
        step = self._first_step_of_epoch() if self._by_epoch else self.global_step
        self._set(self.rate_at(min(step, self._total_steps - 1)))

    def before_epoch(self) -> None:
        """Set the rate of the epoch."""
        self._set(self.rate_at(self.global_step))

    def trigger_step(self) -> None:
        """Set the rate of the next step."""
        step = self.trainer.global_step
        if step < self._total_steps:  # there is no step after the last
            rate = self.rate_at(step)
            if rate != self._rate or self._others:
                self._set(rate)

    def take_over(self) -> None:
        """Set the rate of the next step, whatever holds now: a person has let go of the hyperparameter."""
        if not self._others:
            return  # `before_train` is yet to come, and sets it
        self._rate, self._changed_at = float("nan"), -2
        step = self._first_step_of_epoch() if self._by_epoch else self.global_step
        self._set(self.rate_at(min(step, self._total_steps - 1)))

    def trigger_epoch(self) -> None:
        """Report a rate that changes with every step."""
        self._report()

    def _set(self, rate: float) -> None:
        if any(other.is_holding for other in self._others):
            self._rate = float("nan")  # so that the schedule takes over again once the person lets go
            return
        if rate == self._rate:
            return
        if self._rate != self._rate:  # NaN: somebody else has set what holds now
            self._reported = self._param.get_value()
        stood_still = self.global_step - self._changed_at > 1
        self._rate, self._changed_at = rate, self.global_step
        self._param.set_value(rate)
        if stood_still:
            self._report()

    def _report(self) -> None:
        rate = self._rate
        # Not `!=`: a program may hold the rate as float32, and what it gives back then differs in the eighth digit.
        if rate == rate and not math.isclose(rate, self._reported, rel_tol=1e-6):
            report_change(self.trainer, self._param.readable_name, rate, self._reported, "schedule")
            self._reported = rate

    def _first_step_of_epoch(self) -> int:
        """Return the number of steps before the epoch that is under way or comes next."""
        return self.global_step - (self.trainer.local_step + 1) % self.trainer.steps_per_epoch


def schedules_of(trainer: Trainer, name: str) -> list[LearningRateSchedule]:
    """Return the schedules that set the hyperparameter ``name``."""
    inside = (innermost(callback) for callback in trainer.callbacks)
    return [each for each in inside if isinstance(each, LearningRateSchedule) and each.hyperparameter == name]
