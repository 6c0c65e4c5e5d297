"""Schedules: functions from the progress of a training, in [0, 1], to a factor of the base rate.

Progress is ``global_step / total_steps``: 0 for the first step, and 1 only after the last. A schedule has no state,
so that a resumed run gets the same rates bit for bit.

All sizes are percentages of the training. Unlike in DIGITS, they are *not* rounded to whole steps: a change takes
effect with the first step whose progress has reached it. So the curve is the same for any number of steps, and a
policy never turns into another one when there are few steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ziggurat.errors import ConfigurationError

__all__ = [
    "Cosine",
    "Exponential",
    "Fixed",
    "Inverse",
    "Linear",
    "MultiStep",
    "OneCycle",
    "Piecewise",
    "PiecewiseConstant",
    "Polynomial",
    "Schedule",
    "Sigmoid",
    "Step",
    "WarmUp",
]

_TOLERANCE = 1e-9


@runtime_checkable
class Schedule(Protocol):
    """Anything that turns progress into a factor of the base rate; a plain function will do."""

    def __call__(self, progress: float, /) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        ...


@runtime_checkable
class PiecewiseConstant(Protocol):
    """A schedule whose factor rarely changes, so that it need not be asked before every step."""

    def constant_until(self, progress: float) -> float:
        """Return a progress before which the factor is that of ``progress``: the next change, or a little less."""
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
        raise ConfigurationError(f"`{name}` is {received}; it must be {rule}.", advice=f"Set `{name}` to such a value.")


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 to ``final_factor`` (Loshchilov and Hutter, "SGDR", ICLR 2017, eq. 5), with its restarts.

    Args:
        final_factor: factor at the end of each cycle, in [0, 1].
        cycles: half cosines one after the other; each begins at 1 again.
        cycle_growth: how many times as long as the last one each cycle is (T_mult of the paper), above 0.
    """

    final_factor: float = 0.0
    cycles: int = 1
    cycle_growth: float = 1.0

    def __post_init__(self) -> None:
        _require_share("final_factor", self.final_factor)
        require(self.cycles >= 1, "cycles", "at least 1", self.cycles)
        require(0 < self.cycle_growth < math.inf, "cycle_growth", "above 0", self.cycle_growth)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        if self.cycles == 1:  # by far the usual case, and asked for before every step
            return _half_cosine(1.0, self.final_factor, min(progress, 1.0))
        lengths = [self.cycle_growth**number for number in range(self.cycles)]
        left = progress * sum(lengths)
        for length in lengths[:-1]:
            if left < length:
                return _half_cosine(1.0, self.final_factor, left / length)
            left -= length
        return _half_cosine(1.0, self.final_factor, min(left / lengths[-1], 1.0))


@dataclass(frozen=True)
class OneCycle:
    """Up to 1 and down again along half cosines (Smith and Topin, "Super-convergence", 2018).

    Args:
        peak_percent: progress at which the factor is 1, in (0, 100).
        start_factor: factor at the start, in [0, 1].
        final_factor: factor at the end, in [0, 1].
    """

    peak_percent: float = 30.0
    start_factor: float = 0.04
    final_factor: float = 0.0001

    def __post_init__(self) -> None:
        require(0 < self.peak_percent < 100, "peak_percent", "in (0, 100)", self.peak_percent)
        _require_share("start_factor", self.start_factor)
        _require_share("final_factor", self.final_factor)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        peak = self.peak_percent / 100
        if progress < peak:
            return _half_cosine(self.start_factor, 1.0, progress / peak)
        return _half_cosine(1.0, self.final_factor, (progress - peak) / (1 - peak))


@dataclass(frozen=True)
class Linear:
    """A line from 1 to ``final_factor``.

    Args:
        final_factor: factor at the end, in [0, 1].
    """

    final_factor: float = 0.0

    def __post_init__(self) -> None:
        _require_share("final_factor", self.final_factor)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        return 1 + (self.final_factor - 1) * progress


@dataclass(frozen=True)
class Piecewise:
    """Lines between points; before the first and after the last point the factor stays.

    Args:
        points: (percent, factor) pairs, the percentages rising in [0, 100], the factors at least 0.
    """

    points: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        rising = all(one[0] < other[0] for one, other in itertools.pairwise(self.points))
        inside = all(0 <= percent <= 100 and 0 <= factor < math.inf for percent, factor in self.points)
        fits = bool(self.points) and rising and inside
        require(fits, "points", "(percent, factor) pairs with rising percentages in [0, 100]", list(self.points))

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        percent = 100 * progress
        if percent <= self.points[0][0]:
            return self.points[0][1]
        for (begin, low), (end, high) in itertools.pairwise(self.points):
            if percent <= end:
                return low + (high - low) * (percent - begin) / (end - begin)
        return self.points[-1][1]


@dataclass(frozen=True)
class WarmUp:
    """A line up to another schedule (Goyal et al., "Accurate, large minibatch SGD", 2017, §2.2).

    The other schedule keeps its own time: after the warm-up the factors are what they are without it.

    Args:
        schedule: the schedule after the warm-up.
        warm_up_percent: length of the warm-up, in [0, 100].
        start_factor: share, at the first step, of the factor that the warm-up ends at; in [0, 1].
    """

    schedule: Schedule
    warm_up_percent: float = 5.0
    start_factor: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.warm_up_percent <= 100, "warm_up_percent", "in [0, 100]", self.warm_up_percent)
        _require_share("start_factor", self.start_factor)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        length = self.warm_up_percent / 100
        if progress >= length:
            return self.schedule(progress)
        return self.schedule(length) * (self.start_factor + (1 - self.start_factor) * progress / length)


def _just_before(percent: float) -> float:
    """Return the progress a millionth before ``percent``: a part counts as done within less than that of its end."""
    return percent / 100 * (1 - 1e-6)


def _half_cosine(begin: float, end: float, share: float) -> float:
    return end + (begin - end) * (1 + math.cos(math.pi * share)) / 2


def _require_share(name: str, value: float) -> None:
    require(0 <= value <= 1, name, "in [0, 1]", value)


_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Fixed:
    """factor = 1."""

    def __call__(self, progress: float) -> float:
        """Return 1."""
        return 1.0

    def constant_until(self, progress: float) -> float:
        """Return 1, the end of the training."""
        return 1.0


@dataclass(frozen=True)
class Step:
    """factor = gamma ^ floor(percent / step_percent).

    Args:
        step_percent: the rate falls each time this much of the training is done, in (0, 100].
        gamma: factor of each fall, above 0.
    """

    step_percent: float = 33.0
    gamma: float = 0.1

    def __post_init__(self) -> None:
        require(0 < self.step_percent <= 100, "step_percent", "in (0, 100]", self.step_percent)
        _require_gamma(self.gamma)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        return self.gamma ** whole_parts(100 * progress, self.step_percent)

    def constant_until(self, progress: float) -> float:
        """Return almost the progress at which the next part is done."""
        return _just_before((whole_parts(100 * progress, self.step_percent) + 1) * self.step_percent)


@dataclass(frozen=True)
class MultiStep:
    """factor = gamma ^ (number of points that were reached).

    Args:
        at_percent: progress at which the rate falls, each in [0, 100].
        gamma: factor of each fall, above 0.
    """

    at_percent: Sequence[float] = (50.0, 85.0)
    gamma: float = 0.5

    def __post_init__(self) -> None:
        fits = bool(self.at_percent) and all(0 <= point <= 100 for point in self.at_percent)
        require(fits, "at_percent", "at least one number, each in [0, 100]", list(self.at_percent))
        _require_gamma(self.gamma)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        percent = 100 * progress
        return self.gamma ** sum(point == 0 or whole_parts(percent, point) >= 1 for point in self.at_percent)

    def constant_until(self, progress: float) -> float:
        """Return almost the progress of the next point."""
        percent = 100 * progress
        ahead = [point for point in self.at_percent if point > 0 and whole_parts(percent, point) < 1]
        return _just_before(min(ahead, default=100.0))


@dataclass(frozen=True)
class Exponential:
    """factor = gamma ^ percent.

    Args:
        gamma: factor for each percent of progress, in (0, 1].
    """

    gamma: float = 0.95

    def __post_init__(self) -> None:
        require(0 < self.gamma <= 1, "gamma", "in (0, 1]", self.gamma)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        return self.gamma ** (100 * progress)


@dataclass(frozen=True)
class Inverse:
    """factor = (1 + gamma · percent) ^ −power.

    Args:
        gamma: how fast it falls, above 0.
        power: how far it falls, above 0.
    """

    gamma: float = 0.1
    power: float = 0.5

    def __post_init__(self) -> None:
        _require_gamma(self.gamma)
        require(0 < self.power < math.inf, "power", "above 0", self.power)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        return (1 + self.gamma * 100 * progress) ** -self.power


@dataclass(frozen=True)
class Polynomial:
    """factor = (1 − progress) ^ power.

    Args:
        power: 1 falls in a line, more falls earlier; above 0.
    """

    power: float = 3.0

    def __post_init__(self) -> None:
        require(0 < self.power < math.inf, "power", "above 0", self.power)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        return (1 - progress) ** self.power


@dataclass(frozen=True)
class Sigmoid:
    """factor = 1 / (1 + e ^ (gamma · (percent − step_percent))).

    Args:
        step_percent: progress at which the rate is half the base, in [0, 100].
        gamma: how steep the fall is, above 0.
    """

    step_percent: float = 50.0
    gamma: float = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.step_percent <= 100, "step_percent", "in [0, 100]", self.step_percent)
        _require_gamma(self.gamma)

    def __call__(self, progress: float) -> float:
        """Return the factor at ``progress`` in [0, 1]."""
        exponent = self.gamma * (100 * progress - self.step_percent)
        return 1 / (1 + math.exp(min(exponent, _LARGEST_EXPONENT)))


def _require_gamma(gamma: float) -> None:
    require(0 < gamma < math.inf, "gamma", "above 0", gamma)
