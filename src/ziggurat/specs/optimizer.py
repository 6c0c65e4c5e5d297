"""Optimizer and learning-rate schedule of a training: every rule and policy with its parameters.

Seven of the policies and their defaults are those of DIGITS. Progress runs from 0 % at the first step to 100 % at the
last; ``base`` is the spec's ``learning_rate``.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import SpecModel, bare_text, is_stored, spec_field

__all__ = [
    "MomentumOptimizer",
    "Optimizer",
    "Schedule",
    "StepSchedule",
]


_GROUP = "Optimizer"


def _parameter(default: float | bool, title: str, help: str, **bounds: Any) -> Any:  # noqa: A002
    return spec_field(default, title=title, help=help, group=_GROUP, **bounds)


def _share(default: float, title: str, help: str) -> Any:  # noqa: A002
    return _parameter(default, title, help, ge=0, lt=1)


def _epsilon(default: float) -> Any:
    return _parameter(default, "Epsilon", "Prevents division by zero; typical: 1e-10 to 1e-6.", gt=0)


class SgdOptimizer(SpecModel):
    """Plain stochastic gradient descent."""

    name: Literal["sgd"] = "sgd"


class MomentumOptimizer(SpecModel):
    """Gradient descent with momentum; with ``nesterov`` in the form of Sutskever et al. (ICML 2013)."""

    name: Literal["momentum"] = "momentum"
    momentum: float = _share(0.9, "Momentum", "Fraction of the last update that is kept; typical: 0.9 to 0.99.")
    nesterov: bool = _parameter(False, "Nesterov", "Evaluates the gradient after the momentum step.")


class _Adam(SpecModel):
    """What both forms of Adam have."""

    beta_1: float = _share(0.9, "Beta 1", "Decay of the mean of the gradients; typical: 0.8 to 0.95.")
    beta_2: float = _share(0.999, "Beta 2", "Decay of the mean of squared gradients; typical: 0.95 to 0.999.")
    epsilon: float = _epsilon(1e-8)


class AdamOptimizer(_Adam):
    """Adam (Kingma and Ba, ICLR 2015)."""

    name: Literal["adam"] = "adam"


class AdamWOptimizer(_Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)."""

    name: Literal["adamw"] = "adamw"


class RmspropOptimizer(SpecModel):
    """RMSProp (Tieleman and Hinton, 2012)."""

    name: Literal["rmsprop"] = "rmsprop"
    decay: float = _share(0.9, "Decay", "Decay of the mean of squared gradients; typical: 0.9 to 0.99.")
    momentum: float = _share(0.0, "Momentum", "Fraction of the last update that is kept; typical: 0 to 0.9.")
    epsilon: float = _epsilon(1e-8)


class AdagradOptimizer(SpecModel):
    """Adagrad (Duchi, Hazan and Singer, JMLR 2011)."""

    name: Literal["adagrad"] = "adagrad"
    initial_accumulator: float = _parameter(0.1, "Initial squares", "Initial sum of squares; typical: 0 to 0.1.", ge=0)


class AdagradDaOptimizer(SpecModel):
    """Adagrad with dual averaging (Duchi, Hazan and Singer, JMLR 2011), for sparse linear networks."""

    name: Literal["adagrad_da"] = "adagrad_da"
    initial_accumulator: float = _parameter(0.1, "Initial squares", "Initial sum of squares; typical: 0.1.", gt=0)
    l1: float = _parameter(0.0, "L1", "Strength of the L1 penalty; typical: 0 to 0.01.", ge=0)
    l2: float = _parameter(0.0, "L2", "Strength of the L2 penalty; typical: 0 to 0.01.", ge=0)


class AdadeltaOptimizer(SpecModel):
    """Adadelta (Zeiler, 2012)."""

    name: Literal["adadelta"] = "adadelta"
    rho: float = _share(0.95, "Rho", "Decay of the mean of squares; typical: 0.9 to 0.99.")
    epsilon: float = _epsilon(1e-8)


class FtrlOptimizer(SpecModel):
    """FTRL-Proximal (McMahan et al., KDD 2013)."""

    name: Literal["ftrl"] = "ftrl"
    learning_rate_power: float = _parameter(
        -0.5, "Power", "How the rate falls with the squares; 0 keeps it; typical: -0.5.", le=0
    )
    l1: float = _parameter(0.0, "L1", "Strength of the L1 penalty; typical: 0 to 0.01.", ge=0)
    l2: float = _parameter(0.0, "L2", "Strength of the L2 penalty; typical: 0 to 0.01.", ge=0)


Optimizer = Annotated[
    SgdOptimizer
    | MomentumOptimizer
    | AdamOptimizer
    | AdamWOptimizer
    | RmspropOptimizer
    | AdagradOptimizer
    | AdagradDaOptimizer
    | AdadeltaOptimizer
    | FtrlOptimizer,
    Field(discriminator="name"),
    bare_text("name"),
]
"""Any of the optimizers, told apart by ``name``. A backend may know fewer, and says which."""


_RATE = "Learning rate"
_Percent = Annotated[float, Field(ge=0, le=100)]


class WarmUpFields(SpecModel):
    """What every policy has: a warm-up before it."""

    warm_up_percent: float = spec_field(
        0.0,
        title="Warm-up",
        help="Percentage of the training with a linear warm-up; typical: 0 to 10.",
        unit="%",
        group=_RATE,
        ge=0,
        le=100,
    )
    warm_up_start_factor: float = spec_field(
        0.0,
        title="Start of the warm-up",
        help="Fraction of the rate at the start of the warm-up; typical: 0 to 0.1.",
        group=_RATE,
        ge=0,
        le=1,
    )


def _gamma(default: float, help: str, **bounds: Any) -> Any:  # noqa: A002
    return spec_field(default, title="Gamma", help=help, group=_RATE, **{"gt": 0, **bounds})


class FixedSchedule(WarmUpFields):
    """rate = base."""

    policy: Literal["fixed"] = "fixed"


class StepSchedule(WarmUpFields):
    """rate = base · gamma ^ floor(progress / step_percent)."""

    policy: Literal["step"] = "step"
    step_percent: float = spec_field(
        33.0,
        title="Step size",
        help="Percentage of the training between two drops of the rate; typical: 10 to 50.",
        unit="%",
        group=_RATE,
        gt=0,
        le=100,
    )
    gamma: float = _gamma(0.1, "Factor of the rate at each drop; typical: 0.1 to 0.5.")


class MultistepSchedule(WarmUpFields):
    """rate = base · gamma ^ (number of points passed)."""

    policy: Literal["multistep"] = "multistep"
    at_percent: Annotated[list[_Percent], BeforeValidator(lambda value: _numbers(value))] = spec_field(
        factory=lambda: [50.0, 85.0],
        title="Points",
        help="Progress at which the rate drops; typical: two or three points.",
        unit="%",
        group=_RATE,
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
    power: float = spec_field(0.5, title="Power", help="How far the rate falls; typical: 0.25 to 1.", group=_RATE, gt=0)


class PolySchedule(WarmUpFields):
    """rate = base · (1 − progress / 100) ^ power."""

    policy: Literal["poly"] = "poly"
    power: float = spec_field(
        3.0, title="Power", help="1 is linear, larger falls earlier; typical: 0.5 to 4.", group=_RATE, gt=0
    )


class SigmoidSchedule(WarmUpFields):
    """rate = base / (1 + e ^ (gamma · (progress − step_percent))), with the progress in %."""

    policy: Literal["sigmoid"] = "sigmoid"
    step_percent: float = spec_field(
        50.0,
        title="Middle",
        help="Progress at which the rate is half the base; typical: 30 to 70.",
        unit="%",
        group=_RATE,
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


_Point = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)]


class CosineSchedule(WarmUpFields):
    """Half a cosine from base to base · final_factor (Loshchilov and Hutter, "SGDR", ICLR 2017, eq. 5)."""

    policy: Literal["cosine"] = "cosine"
    final_factor: float = spec_field(
        0.0, title="End", help="Fraction of the base rate at the end; typical: 0 to 0.1.", group=_RATE, ge=0, le=1
    )
    cycles: int = spec_field(1, title="Cycles", help="Number of half cosines; typical: 1 to 5.", group=_RATE, ge=1)
    cycle_growth: float = spec_field(
        1.0,
        title="Growth of cycles",
        help="Length of each cycle relative to the one before; typical: 1 to 2.",
        group=_RATE,
        gt=0,
    )


class LinearSchedule(WarmUpFields):
    """A line from base to base · final_factor."""

    policy: Literal["linear"] = "linear"
    final_factor: float = spec_field(
        0.0, title="End", help="Fraction of the base rate at the end; typical: 0 to 0.1.", group=_RATE, ge=0, le=1
    )


class PiecewiseSchedule(WarmUpFields):
    """Lines between points (progress in %, factor of base)."""

    policy: Literal["piecewise"] = "piecewise"
    points: Annotated[list[_Point], AfterValidator(lambda points, info: _rising(points, info))] = spec_field(
        title="Points",
        help="Pairs of progress in % and factor of the base rate, such as [[0, 0.1], [10, 1], [100, 0]].",
        group=_RATE,
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
        group=_RATE,
        gt=0,
        lt=100,
    )
    start_factor: float = spec_field(
        0.04,
        title="Start",
        help="Fraction of the base rate at the start; typical: 0.02 to 0.1.",
        group=_RATE,
        ge=0,
        le=1,
    )
    final_factor: float = spec_field(
        0.0001, title="End", help="Fraction of the base rate at the end; typical: 0 to 0.01.", group=_RATE, ge=0, le=1
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
