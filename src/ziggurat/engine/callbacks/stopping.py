"""Early end of training: when a metric stops improving, or at a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.observing import ScalarWatch, better
from ziggurat.errors import ConfigurationError

__all__ = ["EarlyStopping", "StopAtTime"]


class EarlyStopping(Callback):
    """Completes the training when a scalar has not become better for a number of observations.

    It looks at the end of every epoch (a wrapper may change that), after all callbacks have put their numbers. Only new
    points count; NaN is never better.

    Args:
        tag: the scalar.
        patience: so many observations in a row without progress end the training; at least 1.
        min_delta: how much better a value must be to count as progress.
        mode: whether smaller (``min``) or larger (``max``) is better.
    """

    def __init__(
        self, tag: str, patience: int = 5, min_delta: float = 0.0, mode: Literal["min", "max"] = "min"
    ) -> None:
        for name, value, least in (("patience", patience, 1), ("min_delta", min_delta, 0)):
            if value < least:
                raise ConfigurationError(f"`{name}` must be at least {least}.", received=value, advice="Set it so.")
        self._watch = ScalarWatch(tag)
        self._patience = patience
        self._margin = min_delta if mode == "max" else -min_delta
        self._better = better(mode)
        self._best: float | None = None
        self._waited = 0
        self._last_step = -1

    def trigger(self) -> None:
        """Judge once all callbacks have put their numbers."""
        self.trainer.at_boundary(self._judge)

    def state(self) -> Any:
        """Return the best value and how long there was none better."""
        return {"best": self._best, "waited": self._waited, "last_step": self._last_step}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._best, self._waited, self._last_step = state["best"], state["waited"], state["last_step"]

    def _judge(self) -> None:
        point = self._watch.newest(self.trainer)
        if point is None or point[0] <= self._last_step:
            return
        self._last_step, value = point
        first = self._best is None and value == value  # NaN differs from itself
        if first or (self._best is not None and self._better(value, self._best + self._margin)):
            self._best, self._waited = value, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            verdict = "was not a number" if self._best is None else f"has not become better than {self._best:g}"
            self.trainer.finish(f"{self._watch.tag} {verdict} for {self._waited} observations")


class StopAtTime(Callback):
    """Stops the training at a given time, so that it can be resumed: before a machine is reclaimed.

    Args:
        at_s: the time, in seconds since 1970.
        after_s: or: seconds of this attempt.
        clock: seconds since 1970.

    Raises:
        ConfigurationError: unless exactly one of the two times is given.
    """

    def __init__(
        self,
        *,
        at_s: float | None = None,
        after_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if (at_s is None) == (after_s is None):
            raise ConfigurationError(
                "StopAtTime takes either `at_s` or `after_s`.",
                received="both" if at_s is not None else "neither",
                advice="Give the moment since 1970, or the seconds from the start of the attempt.",
            )
        self._at_s = at_s
        self._after_s = after_s
        self._clock = clock
        self._deadline_s = 0.0

    def before_train(self) -> None:
        """Find the moment."""
        self._deadline_s = self._at_s if self._at_s is not None else self._clock() + (self._after_s or 0.0)

    def trigger_step(self) -> None:
        """Ask for the end once the moment has come."""
        if self._clock() >= self._deadline_s:
            self.trainer.request_stop("its time is up")
