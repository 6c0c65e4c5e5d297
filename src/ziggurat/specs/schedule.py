"""Learning-rate schedule specs: cosine, linear, piecewise and one-cycle, and the union of all policies.

Progress runs from 0 % at the first step to 100 % at the last; ``base`` is the spec's ``learning_rate``.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import bare_text, is_stored, spec_field
from ziggurat.specs.policies import (
    ExpSchedule,
    FixedSchedule,
    InvSchedule,
    MultistepSchedule,
    PolySchedule,
    SigmoidSchedule,
    StepSchedule,
    WarmUpFields,
)

__all__ = ["CosineSchedule", "LinearSchedule", "OneCycleSchedule", "PiecewiseSchedule", "Schedule"]

_GROUP = "Learning rate"
_Point = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)]


class CosineSchedule(WarmUpFields):
    """Half a cosine from base to base · final_factor (Loshchilov and Hutter, "SGDR", ICLR 2017, eq. 5)."""

    policy: Literal["cosine"] = "cosine"
    final_factor: float = spec_field(
        0.0, title="End", help="Share of the base rate at the end; typical: 0 to 0.1.", group=_GROUP, ge=0, le=1
    )
    cycles: int = spec_field(
        1, title="Cycles", help="Half cosines one after the other; typical: 1 to 5.", group=_GROUP, ge=1
    )
    cycle_growth: float = spec_field(
        1.0,
        title="Growth of cycles",
        help="How many times as long as the last one each cycle is; typical: 1 to 2.",
        group=_GROUP,
        gt=0,
    )


class LinearSchedule(WarmUpFields):
    """A line from base to base · final_factor."""

    policy: Literal["linear"] = "linear"
    final_factor: float = spec_field(
        0.0, title="End", help="Share of the base rate at the end; typical: 0 to 0.1.", group=_GROUP, ge=0, le=1
    )


class PiecewiseSchedule(WarmUpFields):
    """Lines between points (progress in %, factor of base)."""

    policy: Literal["piecewise"] = "piecewise"
    points: Annotated[list[_Point], AfterValidator(lambda points, info: _rising(points, info))] = spec_field(
        title="Points",
        help="Pairs of progress in % and factor of the base rate, such as [[0, 0.1], [10, 1], [100, 0]].",
        group=_GROUP,
        min_length=1,
    )


class OneCycleSchedule(WarmUpFields):
    """Up to base and down again along half cosines (Smith and Topin, "Super-convergence", 2018)."""

    policy: Literal["one_cycle"] = "one_cycle"
    peak_percent: float = spec_field(
        30.0,
        title="Peak",
        help="Progress at which the rate reaches the base; typical: 20 to 45.",
        unit="%",
        group=_GROUP,
        gt=0,
        lt=100,
    )
    start_factor: float = spec_field(
        0.04, title="Start", help="Share of the base rate at the start; typical: 0.02 to 0.1.", group=_GROUP, ge=0, le=1
    )
    final_factor: float = spec_field(
        0.0001, title="End", help="Share of the base rate at the end; typical: 0 to 0.01.", group=_GROUP, ge=0, le=1
    )


Schedule = Annotated[
    FixedSchedule
    | StepSchedule
    | MultistepSchedule
    | ExpSchedule
    | InvSchedule
    | PolySchedule
    | SigmoidSchedule
    | CosineSchedule
    | OneCycleSchedule
    | LinearSchedule
    | PiecewiseSchedule,
    Field(discriminator="policy"),
    bare_text("policy"),
]
"""Any of the policies, told apart by ``policy``."""


def _rising(points: list[list[float]], info: ValidationInfo) -> list[list[float]]:
    percents = [percent for percent, _ in points]
    if percents[-1] > 100 or any(one >= other for one, other in itertools.pairwise(percents)):
        raise PydanticCustomError("wrong", "must have rising percentages up to 100")
    if not any(factor for _, factor in points) and not is_stored(info):
        raise PydanticCustomError("wrong", "must have a factor above 0, or nothing is learned")
    return points
