"""Learning rate during training: a schedule, and a text file that users edit and the studio's slider writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ziggurat.engine.callback import Callback, NeedsFolder, innermost
from ziggurat.engine.callbacks.periods import Period
from ziggurat.engine.callbacks.setters import HyperParam, HyperParamSetter, ProgramParam, report_change, setters_of
from ziggurat.engine.monitor import say
from ziggurat.entities import INTERVENTION
from ziggurat.errors import ConfigurationError, nearest_names
from ziggurat.layout import JobFolder
from ziggurat.schedules.curves import PiecewiseConstant
from ziggurat.schedules.registry import make_schedule

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["HumanHyperParamSetter", "LearningRateSchedule"]


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

    chief_only = False
    """Every process has the hyperparameter, and sets it by itself."""

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
        self._constant = self._schedule if isinstance(self._schedule, PiecewiseConstant) else None
        self._base = base
        self._param = ProgramParam(hyperparameter)
        self._by_epoch = every == "epoch"
        self._rate = float("nan")
        self._reported = 0.0
        self._changed_at = -2
        self._same_until = 0
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
        self._same_until = 0
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
        if step >= self._total_steps:  # there is no step after the last
            return
        for other in self._others:
            if other.is_holding:
                self._let_go()
                return
        if step >= self._same_until:
            rate = self.rate_at(step)
            if self._constant is not None:
                self._same_until = int(self._constant.constant_until(step / self._total_steps) * self._total_steps)
            if rate != self._rate:
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
            self._let_go()
            return
        if rate == self._rate:
            return
        if self._rate != self._rate:  # NaN: the current value was set elsewhere
            self._reported = self._param.get_value()
        stood_still = self.global_step - self._changed_at > 1
        self._rate, self._changed_at = rate, self.global_step
        self._param.set_value(rate)
        if stood_still:
            self._report()

    def _let_go(self) -> None:
        """Forget the rate, so that the schedule takes over again once the person who holds it lets go."""
        self._rate, self._same_until = float("nan"), 0

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


class HumanHyperParamSetter(HyperParamSetter, NeedsFolder):
    """Sets a parameter to what the line ``name: value`` of a text file says.

    The file is read before the first step, after every epoch, and after every k-th step. It need not exist. A value
    holds as long as its line stands there: schedules of the same parameter rest meanwhile. Once the line is gone, a
    ``LearningRateSchedule`` sets the next step; of a resumed training too, where the line went before it was resumed.
    A line that is wrong is reported once, and changes nothing. ``#`` begins a comment.

    Args:
        param: a parameter, or the name of one of the program.
        file_name: the file; a relative name is taken in the folder of the job where ``bind_folder`` gave one, and in
            the current folder otherwise.
        every_k_steps: also read it within an epoch; None for not.
    """

    source = "person"

    chief_only = True
    """The first process has the file; the others take its value."""

    def __init__(
        self, param: str | HyperParam, file_name: str | Path = "hyper.txt", *, every_k_steps: int | None = None
    ) -> None:
        super().__init__(param)
        self.path = Path(file_name)
        self._period = Period(every_k_steps, 1)
        self._reported = ""

    def use_folder(self, folder: JobFolder) -> None:
        """Look for a relative name in this job."""
        self.path = folder.path / self.path

    def hooks(self) -> frozenset[str]:
        """Steps are of interest only where they were asked for."""
        return super().hooks() - self._period.idle_hooks()

    def before_train(self) -> None:
        """Take the value that held, then the file as it is now."""
        if not self.is_holding and self._is_alone_with_schedule():
            self._resumed_value = None  # a schedule knows its rate: that of the next epoch where one has just ended
        super().before_train()
        self.set_now()

    def set_now(self) -> None:
        """Set what the file says; where a person has let go, give the parameter back to its schedule."""
        was_holding = self.is_holding
        super().set_now()
        if was_holding and not self.is_holding:
            name = self.param.readable_name
            schedules = schedules_of(self.trainer, name)
            for schedule in schedules:
                schedule.take_over()
            if schedules:
                title = name.replace("_", " ")
                say(self.trainer, f"{title[:1].upper()}{title[1:]} follows its schedule again", level=INTERVENTION)

    def state(self) -> Any:
        """Return the value that holds, and whether a person holds it."""
        return {**super().state(), "is_holding": self.is_holding}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave: schedules rest until the file has been read."""
        super().load_state(state)
        self.is_holding = state.get("is_holding", False)  # checkpoints of before have only the value

    def trigger_step(self) -> None:
        """Read the file where the step is due."""
        if self._period.is_step_due(self.trainer):
            self.trigger()

    def get_value_to_set(self) -> float | None:
        """Return the value in the file, or None where it has none."""
        values, problems = self._read()
        self.is_holding = self.param.readable_name in values
        self._report(problems)
        return values.get(self.param.readable_name)

    def _read(self) -> tuple[dict[str, float], list[str]]:
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return {}, []
        except (OSError, UnicodeDecodeError) as error:
            return {}, [f"it cannot be read ({error})"]
        values, problems = {}, []
        for number, line in enumerate(lines, start=1):
            name, colon, text = line.partition("#")[0].rpartition(":")
            value = _finite(text)
            if colon and value is not None:
                values[name.strip()] = value
            elif (name + text).strip():
                problems.append(f"line {number} is not `name: value` with a finite number: {line.strip()!r}")
        return values, problems + self._unknown(values)

    def _unknown(self, values: dict[str, float]) -> list[str]:
        others: Any = [innermost(callback) for callback in self.trainer.callbacks]
        known = {other.param.readable_name for other in others if isinstance(other, HumanHyperParamSetter)}
        problems = []
        for name in sorted(values.keys() - known):
            nearest = " or ".join(f"`{each}`" for each in nearest_names(name, known))
            problems.append(f"`{name}` cannot be set here" + (f" (did you mean {nearest}?)" if nearest else ""))
        return problems

    def _report(self, problems: list[str]) -> None:
        text = "; ".join(problems)
        if text and text != self._reported and self._is_spokesman():
            say(self.trainer, f"{self.path.name}: {text}. The rest of the file holds.", level="warning")
        self._reported = text

    def _is_alone_with_schedule(self) -> bool:
        """Return whether only a schedule sets the parameter as well."""
        name = self.param.readable_name
        return bool(schedules_of(self.trainer, name)) and setters_of(self.trainer, name) == [self]

    def _is_spokesman(self) -> bool:
        """Return whether this is the first of all that read the file: one report is enough."""
        others: Any = [innermost(callback) for callback in self.trainer.callbacks]
        readers = [one for one in others if isinstance(one, HumanHyperParamSetter) and one.path == self.path]
        return not readers or readers[0] is self or self not in readers


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
