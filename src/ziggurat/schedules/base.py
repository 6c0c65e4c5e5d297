"""Schedule interface: a function from progress in [0, 1] to a factor of the base rate.

Progress is ``global_step / total_steps``: 0 for the first step, and 1 only after the last. A schedule has no state,
so that a resumed run gets the same rates bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

from ziggurat.errors import ConfigurationError

__all__ = ["Schedule", "require", "whole_parts"]

_TOLERANCE = 1e-9


@runtime_checkable
class Schedule(Protocol):
    """Anything that turns progress into a factor of the base rate; a plain function will do."""

    def __call__(self, progress: float, /) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        ...


def whole_parts(percent: float, size_percent: float) -> int:
    """Return how many whole parts of ``size_percent`` are done.

    A part counts as done within 1e-9 of itself: 29 % of 100 steps is step 29, although ``29 / 100 * 100`` is
    28.999… in binary fractions.
    """
    return math.floor(percent / size_percent + _TOLERANCE)


def require(holds: bool, name: str, rule: str, received: Any) -> None:
    """Raise ``ConfigurationError`` unless ``holds``.

    Args:
        holds: whether the value is right.
        name: of the parameter.
        rule: ends the sentence "`name` must be …".
        received: the value.
    """
    if not holds:
        raise ConfigurationError(
            f"`{name}` must be {rule}.", received=received, advice=f"Set `{name}` to such a value."
        )
