"""Averages over steps: exponential moving averages, and means over a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.capabilities import HasMovingSummaries
from ziggurat.engine.step_values import StepSeries
from ziggurat.errors import ConfigurationError

__all__ = ["MovingAverageSummary", "SimpleMovingAverage"]


class MovingAverageSummary(Callback):
    """Keeps exponential moving averages and puts them after each epoch, under the names of the values.

    An average is m / w with m ← d·m + (1 − d)·x and w ← d·w + (1 − d), both 0 at first: the correction for the start
    of Kingma and Ba, "Adam" (ICLR 2015), §3. A NaN stays in it. A program that ``SupportsRecording`` keeps the values
    until the averages are put; from any other, every step fetches them.

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
        self._series: StepSeries | None = None

    def hooks(self) -> frozenset[str]:
        """Cost nothing where there is nothing to average."""
        self._decays = self._found_decays()
        return super().hooks() if self._decays else frozenset()

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return tuple(self._decays)

    def setup_graph(self) -> None:
        """Ask for the values of all steps."""
        self._series = self.trainer.step_values.series(tuple(self._decays))

    def before_train(self) -> None:
        """Begin the averages that a resume has not brought."""
        self._averages = {name: self._averages.get(name, [0.0, 0.0]) for name in self._decays}

    def before_run(self) -> Sequence[str]:
        """Take part in every step."""
        return () if self._series is None else self._series.before_run()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Hold the values of the step."""
        if self._series is not None:
            self._series.after_run(values)

    def trigger(self) -> None:
        """Put the averages."""
        self._move()
        for name, (total, weight) in self._averages.items():
            if weight > 0:
                self.trainer.put(name, total / weight)

    def state(self) -> Any:
        """Return the averages."""
        self._move()
        return self._averages

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        if self._series is not None:
            self._series.take()
        self._averages = {name: list(pair) for name, pair in state.items()}

    def _move(self) -> None:
        """Take the values of the steps since the last time into the averages."""
        for name, column in ({} if self._series is None else self._series.take()).items():
            average, decay = self._averages[name], self._decays[name]
            for value in column:
                average[0] = decay * average[0] + (1 - decay) * value
                average[1] = decay * average[1] + (1 - decay)

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
        self._series: StepSeries | None = None

    def setup_graph(self) -> None:
        """Ask for the values of all steps; no window is longer than what is held."""
        self._series = self.trainer.step_values.series(self._names, last=self._size)

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_run(self) -> Sequence[str]:
        """Take part in every step."""
        return () if self._series is None else self._series.before_run()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Hold the values of the step; put the means where the window is full."""
        if self._series is not None:
            self._series.after_run(values)
        if self.global_step % self._size == 0:
            self._move()
            for name, window in self._windows.items():
                if len(window) == self._size:
                    self.trainer.put(f"{name}/SMA", sum(window) / len(window))

    def state(self) -> Any:
        """Return the windows."""
        self._move()
        return {name: list(window) for name, window in self._windows.items()}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        if self._series is not None:
            self._series.take()
        for name, window in self._windows.items():
            window.extend(state.get(name, ()))

    def _move(self) -> None:
        for name, column in ({} if self._series is None else self._series.take()).items():
            self._windows[name].extend(column)
