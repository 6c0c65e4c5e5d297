"""Averages over steps: exponential moving averages, and means over a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.capabilities import HasMovingSummaries
from ziggurat.errors import ConfigurationError

__all__ = ["MovingAverageSummary", "SimpleMovingAverage"]


class MovingAverageSummary(Callback):
    """Keeps exponential moving averages and puts them after each epoch, under the names of the values.

    An average is m / w with m ← d·m + (1 − d)·x and w ← d·w + (1 − d), both 0 at first: the correction for the start
    of Kingma and Ba, "Adam" (ICLR 2015), §3. A NaN stays in it. Every step fetches the names, which costs a
    synchronization with the device.

    Args:
        names: single numbers of the program; None for what it offers by ``moving_summary_names()``.
        decay: d, in [0, 1).
    """

    def __init__(self, names: Sequence[str] | None = None, decay: float = 0.95) -> None:
        if not 0 <= decay < 1:
            raise ConfigurationError("`decay` must be in [0, 1).", received=decay, advice="0.95 is usual.")
        self._given_names = names
        self._decay = decay
        self._decays: dict[str, float] = {}
        self._averages: dict[str, list[float]] = {}

    def hooks(self) -> frozenset[str]:
        """Cost nothing where there is nothing to average."""
        self._decays = self._found_decays()
        return super().hooks() if self._decays else frozenset()

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return tuple(self._decays)

    def before_train(self) -> None:
        """Begin the averages that a resume has not brought."""
        self._averages = {name: self._averages.get(name, [0.0, 0.0]) for name in self._decays}

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step."""
        return tuple(self._decays)

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Take the values of the step into the averages."""
        for name, decay in self._decays.items():
            average = self._averages[name]
            average[0] = decay * average[0] + (1 - decay) * float(values[name])
            average[1] = decay * average[1] + (1 - decay)

    def trigger(self) -> None:
        """Put the averages."""
        for name, (total, weight) in self._averages.items():
            if weight > 0:
                self.trainer.put(name, total / weight)

    def state(self) -> Any:
        """Return the averages."""
        return self._averages

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._averages = {name: list(pair) for name, pair in state.items()}

    def _found_decays(self) -> dict[str, float]:
        program = self.trainer.program
        if self._given_names is not None:
            return dict.fromkeys(self._given_names, self._decay)
        if not isinstance(program, HasMovingSummaries):
            return {}
        names = program.moving_summary_names()
        return dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, self._decay)


class SimpleMovingAverage(Callback):
    """Puts the mean of the last ``window_size`` steps, every ``window_size`` steps, as ``<name>/SMA``.

    Args:
        names: single numbers of the program.
        window_size: steps in a window, at least 1.
    """

    def __init__(self, names: Sequence[str], window_size: int) -> None:
        if window_size < 1:
            raise ConfigurationError("`window_size` must be at least 1.", received=window_size, advice="Set it so.")
        self._names = tuple(names)
        self._windows: dict[str, deque[float]] = {name: deque(maxlen=window_size) for name in names}
        self._size = window_size

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step."""
        return self._names

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Take the values of the step; put the means where the window is full."""
        for name, window in self._windows.items():
            window.append(float(values[name]))
            if len(window) == self._size and self.global_step % self._size == 0:
                self.trainer.put(f"{name}/SMA", sum(window) / len(window))

    def state(self) -> Any:
        """Return the windows."""
        return {name: list(window) for name, window in self._windows.items()}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        for name, window in self._windows.items():
            window.extend(state.get(name, ()))
