"""Registry of schedules by name, and a preview of a schedule's curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.schedules.curves import (
    Cosine,
    Exponential,
    Fixed,
    Inverse,
    Linear,
    MultiStep,
    OneCycle,
    Piecewise,
    Polynomial,
    Schedule,
    Sigmoid,
    Step,
    WarmUp,
)

__all__ = ["SCHEDULES", "make_schedule", "preview"]

SCHEDULES: Final[dict[str, Callable[..., Schedule]]] = {
    "fixed": Fixed,
    "step": Step,
    "multistep": MultiStep,
    "exp": Exponential,
    "inv": Inverse,
    "poly": Polynomial,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "one_cycle": OneCycle,
    "linear": Linear,
    "piecewise": Piecewise,
}
"""Name in a spec → schedule. The first seven are DIGITS's."""


def make_schedule(
    name: str, *, warm_up_percent: float = 0.0, warm_up_start_factor: float = 0.0, **parameters: Any
) -> Schedule:
    """Return the schedule ``name``, behind a warm-up where one is asked for.

    Args:
        name: a key of ``SCHEDULES``.
        warm_up_percent: length of the warm-up; 0 for none.
        warm_up_start_factor: share at which the warm-up starts.
        parameters: of the schedule; what is left out has its default.

    Raises:
        UnknownNameError: where there is no such schedule, or it has no such parameter.
        ConfigurationError: where a value does not fit, or one is missing.
    """
    if name not in SCHEDULES:
        raise UnknownNameError("schedule", name, SCHEDULES)
    kind: Any = SCHEDULES[name]
    known = [part.name for part in fields(kind)]
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of schedule `{name}`", parameter, known)
    try:
        schedule = kind(**parameters)
    except TypeError as error:
        raise ConfigurationError(
            f"The parameters of schedule `{name}` do not fit: {str(error).rstrip('.')}.",
            advice=f"It takes: {', '.join(known)}.",
        ) from error
    return WarmUp(schedule, warm_up_percent, warm_up_start_factor) if warm_up_percent else schedule


def preview(schedule: Schedule, base: float, points: int = 101) -> list[tuple[float, float]]:
    """Return (percent, rate) at equal distances from 0 % to 100 %, both included.

    The rates are those that a training sets at these percentages: it calls the same function with the same progress.

    Args:
        schedule: the schedule.
        base: the base rate.
        points: how many; 101 gives one a percent.
    """
    last = points - 1
    return [(100 * number / last, base * schedule(number / last)) for number in range(points)]
