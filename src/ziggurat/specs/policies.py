"""Specs of the seven learning-rate policies of DIGITS, with the defaults of DIGITS.

Progress runs from 0 % at the first step to 100 % at the last; ``base`` is the spec's ``learning_rate``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ziggurat.specs.base import SpecModel, spec_field

__all__ = [
    "ExpSchedule",
    "FixedSchedule",
    "InvSchedule",
    "MultistepSchedule",
    "PolySchedule",
    "SigmoidSchedule",
    "StepSchedule",
    "WarmUpFields",
]

_GROUP = "Learning rate"
_Percent = Annotated[float, Field(ge=0, le=100)]


class WarmUpFields(SpecModel):
    """What every policy has: a warm-up before it."""

    warm_up_percent: float = spec_field(
        0.0,
        title="Warm-up",
        help="Share of the training in which the rate climbs in a line to the policy's; typical: 0 to 10.",
        unit="%",
        group=_GROUP,
        ge=0,
        le=100,
    )
    warm_up_start_factor: float = spec_field(
        0.0,
        title="Start of the warm-up",
        help="Share of the policy's rate at which the warm-up starts; typical: 0 to 0.1.",
        group=_GROUP,
        ge=0,
        le=1,
    )


def _gamma(default: float, help: str, **bounds: Any) -> Any:  # noqa: A002
    return spec_field(default, title="Gamma", help=help, group=_GROUP, **{"gt": 0, **bounds})


class FixedSchedule(WarmUpFields):
    """rate = base."""

    policy: Literal["fixed"] = "fixed"


class StepSchedule(WarmUpFields):
    """rate = base · gamma ^ floor(progress / step_percent)."""

    policy: Literal["step"] = "step"
    step_percent: float = spec_field(
        33.0,
        title="Step size",
        help="The rate falls each time this much of the training is done; typical: 10 to 50.",
        unit="%",
        group=_GROUP,
        gt=0,
        le=100,
    )
    gamma: float = _gamma(0.1, "Factor of the rate at each fall; typical: 0.1 to 0.5.")


class MultistepSchedule(WarmUpFields):
    """rate = base · gamma ^ (number of points passed)."""

    policy: Literal["multistep"] = "multistep"
    at_percent: Annotated[list[_Percent], BeforeValidator(lambda value: _numbers(value))] = spec_field(
        factory=lambda: [50.0, 85.0],
        title="Points",
        help="Progress at which the rate falls; two or three points are usual.",
        unit="%",
        group=_GROUP,
        min_length=1,
    )
    gamma: float = _gamma(0.5, "Factor of the rate at each point; typical: 0.1 to 0.5.")


class ExpSchedule(WarmUpFields):
    """rate = base · gamma ^ progress, with the progress in %."""

    policy: Literal["exp"] = "exp"
    gamma: float = _gamma(0.95, "Factor of the rate for each percent of progress; typical: 0.9 to 0.99.", le=1)


class InvSchedule(WarmUpFields):
    """rate = base · (1 + gamma · progress) ^ −power, with the progress in %."""

    policy: Literal["inv"] = "inv"
    gamma: float = _gamma(0.1, "How fast the rate falls; typical: 0.01 to 1.")
    power: float = spec_field(
        0.5, title="Power", help="How far the rate falls; typical: 0.25 to 1.", group=_GROUP, gt=0
    )


class PolySchedule(WarmUpFields):
    """rate = base · (1 − progress / 100) ^ power."""

    policy: Literal["poly"] = "poly"
    power: float = spec_field(
        3.0, title="Power", help="1 falls in a line, more falls earlier; typical: 0.5 to 4.", group=_GROUP, gt=0
    )


class SigmoidSchedule(WarmUpFields):
    """rate = base / (1 + e ^ (gamma · (progress − step_percent))), with the progress in %."""

    policy: Literal["sigmoid"] = "sigmoid"
    step_percent: float = spec_field(
        50.0,
        title="Middle",
        help="Progress at which the rate is half the base; typical: 30 to 70.",
        unit="%",
        group=_GROUP,
        ge=0,
        le=100,
    )
    gamma: float = _gamma(0.1, "How steep the fall is; typical: 0.05 to 0.5.")


def _numbers(value: Any) -> Any:
    """Return DIGITS's ``"50,85"`` as a list of numbers; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        return value
