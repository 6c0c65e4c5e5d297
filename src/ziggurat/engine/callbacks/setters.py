"""Hyperparameters that change during training, and the callbacks that set them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ziggurat.engine.callback import Callback, innermost
from ziggurat.engine.monitor import ScalarWatch, say
from ziggurat.errors import ConfigurationError, StateError, UnknownNameError
from ziggurat.events import HyperparameterChanged

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = [
    "HyperParam",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "ObjAttrParam",
    "ProgramParam",
    "ScheduledHyperParamSetter",
    "StatMonitorParamSetter",
    "report_change",
    "setters_of",
]


class HyperParam(ABC):
    """A number that callbacks may set; ``readable_name`` names it in events and in ``hyper.txt``."""

    readable_name: str

    def bind(self, trainer: Trainer) -> None:
        """Take note of the trainer, once, before the first value is read.

        Raises:
            UnknownNameError: where the trainer's program has no such value.
        """

    @abstractmethod
    def get_value(self) -> float:
        """Return the value that holds now."""

    @abstractmethod
    def set_value(self, v: float) -> None:
        """Let another value hold from the next step on."""


class ProgramParam(HyperParam):
    """A hyperparameter of the program, such as ``learning_rate``. Callbacks accept its plain name instead.

    Args:
        name: one of ``program.hyperparameters()``; a graph's ``learning_rate:0`` means ``learning_rate``.
    """

    def __init__(self, name: str) -> None:
        self.readable_name = name.removesuffix(":0")
        self._trainer: Trainer | None = None

    def bind(self, trainer: Trainer) -> None:
        """Take the program of the trainer."""
        known = trainer.program.hyperparameters()
        if self.readable_name not in known:
            raise UnknownNameError("hyperparameter of this program", self.readable_name, known)
        self._trainer = trainer

    def get_value(self) -> float:
        """Ask the program."""
        return float(self._bound().program.hyperparameters()[self.readable_name])

    def set_value(self, v: float) -> None:
        """Tell the program."""
        self._bound().program.set_hyperparameter(self.readable_name, float(v))

    def _bound(self) -> Trainer:
        if self._trainer is None:
            raise StateError(
                f"The hyperparameter `{self.readable_name}` belongs to a training.",
                advice="Use it in a callback of a trainer, from `before_train` on.",
            )
        return self._trainer


class ObjAttrParam(HyperParam):
    """An attribute of an object.

    Args:
        obj: the object.
        attrname: name of the attribute, which must exist.
        readable_name: another name for events and files.

    Raises:
        UnknownNameError: where the object has no such attribute.
    """

    def __init__(self, obj: Any, attrname: str, readable_name: str | None = None) -> None:
        if not hasattr(obj, attrname):
            raise UnknownNameError(
                f"attribute of {type(obj).__name__}", attrname, [name for name in dir(obj) if not name.startswith("_")]
            )
        self.readable_name = readable_name or attrname
        self._obj = obj
        self._attribute = attrname

    def get_value(self) -> float:
        """Read the attribute."""
        return getattr(self._obj, self._attribute)

    def set_value(self, v: float) -> None:
        """Set the attribute."""
        setattr(self._obj, self._attribute, v)


def as_parameter(param: str | HyperParam) -> HyperParam:
    """Return the parameter; a string names one of the program."""
    return ProgramParam(param) if isinstance(param, str) else param


class HyperParamSetter(Callback):
    """Base of setters: sets the parameter before the first step and on every trigger; every change is an event.

    A subclass defines ``get_value_to_set``. When a training is resumed, the value that held goes on to hold. What a
    person wrote into ``hyper.txt`` holds as long as it stands there.

    Args:
        param: a parameter, or the name of one of the program.
    """

    source: ClassVar[str] = "callback"
    """Who set the value, in the event."""

    chief_only = False
    """Every process has the parameter, and sets it by itself."""

    is_holding: bool = False
    """Whether a person holds the parameter through this setter: the others rest meanwhile."""

    def __init__(self, param: str | HyperParam) -> None:
        self.param = as_parameter(param)
        self._resumed_value: float | None = None

    def setup_graph(self) -> None:
        """Find the parameter, so that a wrong name is an error before any work is done."""
        super().setup_graph()
        self.param.bind(self.trainer)

    def before_train(self) -> None:
        """Set the first value; of a resumed training, the one that held."""
        if self._resumed_value is None:
            self.set_at_start()
        else:
            self.param.set_value(self._resumed_value)
            self._resumed_value = None

    def trigger(self) -> None:
        """Set the value of now."""
        self.set_now()

    def get_value_to_set(self) -> float | None:
        """Return the value for the steps to come, or None to leave it as it is. Tensorpack's name works too."""
        return self._legacy("_get_value_to_set")

    def get_current_value(self) -> float:
        """Return the value that holds now."""
        return self.param.get_value()

    def set_at_start(self) -> None:
        """Set the value for the first step."""
        self.set_now()

    def set_now(self) -> None:
        """Set the value of now, unless a person holds the parameter."""
        value = self.get_value_to_set()
        if value is not None:
            self.set_value(value)

    def set_value(self, value: float) -> None:
        """Set a value, unless it is there already or a person holds the parameter; a change is an event."""
        name = self.param.readable_name
        if not self.is_holding and any(setter.is_holding for setter in setters_of(self.trainer, name)):
            return
        previous = self.param.get_value()
        if value != previous:
            self.param.set_value(value)
            report_change(self.trainer, name, value, previous, self.source)

    def state(self) -> Any:
        """Return the value that holds."""
        return {"value": self.param.get_value()}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._resumed_value = state["value"]


class ScheduledHyperParamSetter(HyperParamSetter):
    """Sets a parameter by a list of (epoch, value): each value holds from *after* that epoch on, 0 is the start.

    >>> ScheduledHyperParamSetter("learning_rate", [(30, 1e-2), (60, 1e-3), (85, 1e-4), (95, 1e-5)])

    Args:
        param: a parameter, or the name of one of the program.
        schedule: (epoch, value) pairs, the epochs rising. A value of 0 is a value.
        interp: ``"linear"`` sets points on the lines between the pairs; None keeps each value until the next pair.
        step_based: the first numbers are ``global_step``s.
        set_at_beginning: set the value that holds at the start; otherwise a difference there is only said.
    """

    source = "schedule"

    def __init__(
        self,
        param: str | HyperParam,
        schedule: Sequence[tuple[int, float]],
        interp: Literal["linear"] | None = None,
        step_based: bool = False,
        set_at_beginning: bool = True,
    ) -> None:
        super().__init__(param)
        self._schedule = [(int(point), float(value)) for point, value in schedule]
        self._interp = interp
        self._step_based = step_based
        self._set_at_beginning = set_at_beginning
        _check_schedule(self._schedule, interp)

    def hooks(self) -> frozenset[str]:
        """Take the hook of steps or that of epochs."""
        return super().hooks() - {"trigger_epoch" if self._step_based else "trigger_step"}

    def trigger_step(self) -> None:
        """Set the value after a step."""
        self.trigger()

    def get_value_to_set(self) -> float | None:
        """Return the value that begins to hold now, or None where none does."""
        point = self._point()
        if self._interp is not None:
            return self._on_the_line(point)
        return next((value for at, value in self._schedule if at == point), None)

    def set_at_start(self) -> None:
        """Set the value that holds at the start, or say that another one does."""
        point = self._point()
        passed = [value for at, value in self._schedule if at <= point]
        expected = self._on_the_line(point) if self._interp is not None else (passed[-1] if passed else None)
        previous = self.param.get_value()
        if expected is None or expected == previous:
            return
        if self._set_at_beginning:
            self.set_value(expected)
        else:
            name = self.param.readable_name
            text = f"`{name}` is {previous:g} at the start, while its schedule says {expected:g}; it stays as it is."
            say(self.trainer, text, level="warning")

    def state(self) -> Any:
        """Return the value that holds, and the schedule that led to it."""
        return {**super().state(), "schedule": [list(pair) for pair in self._schedule]}

    def load_state(self, state: Any) -> None:
        """Take the value back, unless the schedule has changed since: then the new one applies."""
        if [tuple(pair) for pair in state["schedule"]] == self._schedule:
            super().load_state(state)

    def _point(self) -> int:
        return self.global_step if self._step_based else epochs_done(self.trainer)

    def _on_the_line(self, point: int) -> float | None:
        for (begin, low), (end, high) in itertools.pairwise(self._schedule):
            if begin <= point <= end:
                return low + (high - low) * (point - begin) / (end - begin)
        return None


class HyperParamSetterWithFunc(HyperParamSetter):
    """Sets a parameter to ``func(epoch_num, old_value)`` at the start (epoch 0) and after every epoch.

    Args:
        param: a parameter, or the name of one of the program.
        func: returns the new value, or None to leave it.
    """

    source = "function"

    def __init__(self, param: str | HyperParam, func: Callable[[int, float], float | None]) -> None:
        super().__init__(param)
        self._func = func

    def get_value_to_set(self) -> float | None:
        """Ask the function."""
        return self._func(self.epoch_num, self.get_current_value())


class StatMonitorParamSetter(HyperParamSetter):
    """Changes a parameter when a scalar has stood still: the plateau rule.

    After ``last_k`` observations since the last change: unless their minimum is below the first of them by more than
    ``threshold``, the value becomes ``value_func(old)``. It looks once all callbacks have put their numbers, and only
    new points count.

    Args:
        param: a parameter, or the name of one of the program.
        stat_name: the scalar.
        value_func: takes the old value.
        threshold: how much progress is progress, at least 0.
        last_k: how many observations are looked at, at least 2.
        reverse: the scalar should rise: the maximum must be above the first by more than ``threshold``.
    """

    source = "plateau"

    chief_only = True
    """The first process has the curves; the others take its value."""

    def __init__(
        self,
        param: str | HyperParam,
        stat_name: str,
        value_func: Callable[[float], float],
        threshold: float,
        last_k: int,
        reverse: bool = False,
    ) -> None:
        super().__init__(param)
        if threshold < 0 or last_k < 2:
            raise ConfigurationError(
                "`threshold` must be at least 0, and `last_k` at least 2.",
                received=f"threshold={threshold}, last_k={last_k}",
                advice="Progress is seen between two observations at least.",
            )
        self._watch = ScalarWatch(stat_name)
        self._value_func = value_func
        self._threshold = threshold
        self._last_k = last_k
        self._sign = -1.0 if reverse else 1.0
        self._seen: list[float] = []
        self._last_step = -1

    def set_at_start(self) -> None:
        """Do nothing: nothing was observed yet."""

    def trigger(self) -> None:
        """Judge once all callbacks have put their numbers."""
        self.trainer.at_boundary(self.set_now)

    def get_value_to_set(self) -> float | None:
        """Return the new value where the scalar stands still."""
        point = self._watch.newest(self.trainer)
        if point is None or point[0] <= self._last_step:
            return None
        self._last_step = point[0]
        self._seen = [*self._seen, self._sign * point[1]][-self._last_k :]
        if len(self._seen) < self._last_k or min(self._seen) < self._seen[0] - self._threshold:
            return None
        self._seen = []
        return self._value_func(self.get_current_value())

    def state(self) -> Any:
        """Return the value that holds, and what was observed since the last change."""
        return {**super().state(), "seen": self._seen, "last_step": self._last_step}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        super().load_state(state)
        self._seen, self._last_step = list(state["seen"]), state["last_step"]


def epochs_done(trainer: Trainer) -> int:
    """Return how many epochs are complete; in ``trigger_epoch`` the one that ends counts."""
    is_inside = 0 <= trainer.local_step < trainer.steps_per_epoch - 1
    return trainer.epoch_num - 1 if is_inside else trainer.epoch_num


def report_change(trainer: Trainer, name: str, value: float, previous: float, source: str) -> None:
    """Tell the monitors that a hyperparameter has another value from now on."""
    trainer.monitors.put_event(
        HyperparameterChanged(
            time=trainer.monitors.now(),
            name=name,
            value=float(value),
            previous=float(previous),
            step=trainer.global_step,
            source=source,
        )
    )


def setters_of(trainer: Trainer, name: str) -> list[HyperParamSetter]:
    """Return the callbacks that set the parameter ``name``."""
    inside = (innermost(callback) for callback in trainer.callbacks)
    return [each for each in inside if isinstance(each, HyperParamSetter) and each.param.readable_name == name]


def _check_schedule(schedule: Sequence[tuple[int, float]], interp: str | None) -> None:
    if interp not in (None, "linear"):
        raise ConfigurationError('`interp` must be None or "linear".', received=interp, advice="Choose one of them.")
    rising = all(one[0] < other[0] for one, other in itertools.pairwise(schedule))
    if not schedule or not rising or schedule[0][0] < 0:
        raise ConfigurationError(
            "`schedule` must be a list of (epoch, value) pairs whose epochs rise from 0.",
            received=list(schedule),
            advice="Write, for instance, [(30, 1e-2), (60, 1e-3)].",
        )
