"""Access to a scalar that other callbacks log: its newest value, and a hint when its name is wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from ziggurat.engine.monitors.messages import say
from ziggurat.errors import ConfigurationError, UnknownNameError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["ScalarWatch", "better"]


class ScalarWatch:
    """Looks at one scalar.

    Args:
        tag: its name.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._is_missed = False

    def newest(self, trainer: Trainer) -> tuple[int, float] | None:
        """Return (step, value) of the newest point; None where there is none yet, which is said once."""
        try:
            return trainer.monitors.get_history(self.tag)[-1]
        except UnknownNameError as error:
            if not self._is_missed:
                self._is_missed = True
                say(trainer, f"No scalar `{self.tag}` was put so far. {error.advice}", level="warning")
            return None


def better(mode: str) -> Callable[[float, float], bool]:
    """Return the comparison that says whether a value is strictly better than another; NaN never is.

    Raises:
        ConfigurationError: where the mode is neither ``min`` nor ``max``.
    """
    if mode not in ("min", "max"):
        raise ConfigurationError(
            "`mode` must be `min` or `max`.", received=mode, advice="Use `min` for errors and `max` for accuracies."
        )
    return operator.lt if mode == "min" else operator.gt
