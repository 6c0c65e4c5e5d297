"""Seven learning-rate policies of DIGITS, with its defaults.

All sizes are percentages of the training. Unlike in DIGITS, they are *not* rounded to whole steps: a change takes
effect with the first step whose progress has reached it. So the curve is the same for any number of steps, and a
policy never turns into another one when there are few steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ziggurat.schedules.base import require, whole_parts

__all__ = ["Exponential", "Fixed", "Inverse", "MultiStep", "Polynomial", "Sigmoid", "Step"]

_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Fixed:
    """factor = 1."""

    def __call__(self, progress: float) -> float:
        """Return 1."""
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
