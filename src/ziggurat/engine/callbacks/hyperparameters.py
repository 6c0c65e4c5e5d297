"""Hyperparameters that can be set during training: a value of the program, or an attribute of any object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ziggurat.errors import StateError, UnknownNameError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["HyperParam", "ObjAttrParam", "ProgramParam", "as_parameter"]


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
        name: one of ``program.hyperparameters()``.
    """

    def __init__(self, name: str) -> None:
        self.readable_name = name
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
