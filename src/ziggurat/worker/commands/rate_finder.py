"""Learning-rate finder: the loss over a rising rate, a rate to start from, and the largest rate that stays finite.

The test is that of Smith ("Cyclical learning rates for training neural networks", WACV 2017, section 3.3): a few
short steps from the first weights, with a rate that rises exponentially. The end of the test and the suggestion follow
fastai's ``lr_find`` (Howard and Gugger, "fastai: a layered API for deep learning", 2020): it ends where the smoothed
loss is four times its minimum, and suggests a tenth of the rate at the minimum of the smoothed loss. Candidate rates
are then tried for some steps each: a rate that is fine for one step of the test may diverge when it is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.engine.program import NonFiniteStep, Program, SupportsRecording

__all__ = ["RateFinder"]

_COST: Final = "cost"
_RATE: Final = "learning_rate"
_LOWEST, _HIGHEST = 1e-8, 10.0
_STEPS: Final = 100
_FEWEST_STEPS: Final = 36
_TRIAL_STEPS: Final = 20
_FEWEST_TRIAL_STEPS: Final = 6

_SMOOTHING: Final = 0.9
"""Share of the earlier losses in the smoothed one: about a decade of the rate."""

_MUCH_WORSE: Final = 4.0
"""The test ends where the smoothed loss is so many times its minimum."""

_EXPLODED: Final = 1000.0
"""A loss that is so many times the first one is on its way to infinity."""

_BELOW_MINIMUM: Final = 10.0
_NEXT_LOWER: Final = 10**0.5
_MOST_TRIALS: Final = 12

_CLOSE: Final = 1.3
"""The search for the largest finite rate ends when two rates have a smaller ratio."""

RULE: Final = "a tenth of the rate at the smallest smoothed loss"


@dataclass
class RateFinder:
    """Finds learning rates for a program that is set up; the weights of the program change.

    Args:
        program: whose values include ``cost``, which was declared.
        next_batch: gives the next training batch.
        first_state: of the program before any step.
        step_s: seconds of a step.
        budget_s: time limit; slow networks get fewer steps.
        clock: seconds of a clock that never goes back.
    """

    program: Program
    next_batch: Callable[[], Any]
    first_state: Callable[[], Mapping[str, np.ndarray]]
    step_s: float
    budget_s: float
    clock: Callable[[], float] = time.perf_counter
    _first_loss: float = field(default=math.nan, init=False)
    _ends_at: float = field(default=0.0, init=False)

    def find(self, own_rate: float) -> dict[str, Any]:
        """Find a suggested rate and the largest finite rate.

        Args:
            own_rate: of the training; it is tried as well.

        Returns:
            ``rates``, ``losses`` (smoothed) and ``raw_losses`` of the curve; ``suggested`` (None where no rate trains),
            ``rule``; ``largest_finite`` (None where none was found) and ``largest_is_bound`` (whether no larger one was
            tried); ``own`` (``rate``, ``finite``, and the ``step`` from 1 at which the loss was not finite, or None);
            ``trial_steps``: for how many steps a rate was kept to call it finite.
        """
        self._ends_at = self.clock() + self.budget_s
        steps = self._affordable(_STEPS, _FEWEST_STEPS, 0.5)
        trial_steps = self._affordable(_TRIAL_STEPS, _FEWEST_TRIAL_STEPS, 0.05)
        rates, raw, smoothed, diverged_at = self._rise(steps)
        own_step = self._diverges(own_rate, trial_steps)
        suggested = self._suggestion(rates, smoothed, trial_steps)
        largest, is_bound = self._largest(rates, diverged_at, suggested, own_rate, own_step, trial_steps)
        return {
            "rates": rates,
            "losses": smoothed,
            "raw_losses": raw,
            "suggested": suggested,
            "rule": RULE,
            "largest_finite": largest,
            "largest_is_bound": is_bound,
            "own": {"rate": own_rate, "finite": own_step is None, "step": own_step},
            "trial_steps": trial_steps,
        }

    def _affordable(self, most: int, fewest: int, share: float) -> int:
        return max(fewest, min(most, int(self.budget_s * share / max(self.step_s, 1e-6))))

    def _rise(self, steps: int) -> tuple[list[float], list[float], list[float], float | None]:
        """Train with a rising rate; return rates, losses, smoothed losses, and the rate at which it diverged."""
        self._restore()
        rates: list[float] = []
        raw: list[float] = []
        smoothed: list[float] = []
        average = 0.0
        for number in range(steps):
            rate = _LOWEST * (_HIGHEST / _LOWEST) ** (number / (steps - 1))
            loss = self._step(rate)
            if number == 0:
                self._first_loss = loss
            if not self._is_sound(loss):
                return rates, raw, smoothed, rate
            average = _SMOOTHING * average + (1 - _SMOOTHING) * loss
            rates.append(rate)
            raw.append(loss)
            smoothed.append(average / (1 - _SMOOTHING ** (number + 1)))
            if smoothed[-1] > _MUCH_WORSE * max(min(smoothed), 1e-12):
                return rates, raw, smoothed, rate
        return rates, raw, smoothed, None

    def _suggestion(self, rates: list[float], smoothed: list[float], steps: int) -> float | None:
        """Return the rate of the rule, or the next lower one that trains."""
        if not rates:
            return None
        rate = rates[int(np.argmin(smoothed))] / _BELOW_MINIMUM
        while rate >= _LOWEST and not self._is_over():
            if self._diverges(rate, steps) is None:
                return _rounded(rate)
            rate /= _NEXT_LOWER
        return None

    def _largest(
        self,
        rates: list[float],
        diverged_at: float | None,
        suggested: float | None,
        own_rate: float,
        own_step: int | None,
        steps: int,
    ) -> tuple[float | None, bool]:
        """Return the largest rate that stays finite when it is kept, and whether no larger one was tried."""
        low = max((rate for rate in (suggested, own_rate if own_step is None else None) if rate), default=None)
        if low is None:
            return None, False
        high = diverged_at if diverged_at is not None and diverged_at > low else None
        if high is None:
            if low >= _HIGHEST or self._diverges(_HIGHEST, steps) is None:
                return max(_HIGHEST, low), True
            high = _HIGHEST
        # A rate that diverged in the test may be finite when it is kept from the start, and vice versa.
        for _ in range(_MOST_TRIALS):
            if high / low <= _CLOSE or self._is_over():
                break
            middle = math.sqrt(high * low)
            low, high = (middle, high) if self._diverges(middle, steps) is None else (low, middle)
        return low, False

    def _diverges(self, rate: float, steps: int) -> int | None:
        """Return the step, from 1, at which the loss of a training with a fixed rate is not finite; None for none."""
        self._restore()
        for number in range(1, steps + 1):
            if not self._is_sound(self._step(rate)):
                return number
        return None

    def _step(self, rate: float) -> float:
        self.program.set_hyperparameter(_RATE, rate)
        try:
            return float(self.program.step(self.next_batch(), (_COST,))[_COST])
        except NonFiniteStep:
            return math.nan

    def _is_sound(self, loss: float) -> bool:
        if not math.isfinite(loss):
            return False
        return not math.isfinite(self._first_loss) or abs(loss) <= _EXPLODED * max(abs(self._first_loss), 1e-6)

    def _restore(self) -> None:
        if isinstance(self.program, SupportsRecording):
            self.program.recorded()  # discards the recorded values of earlier steps: the buffer is limited
        self.program.load_state(self.first_state())

    def _is_over(self) -> bool:
        return self.clock() > self._ends_at


def _rounded(rate: float) -> float:
    """Return a rate with two significant digits."""
    return float(f"{rate:.1e}")
