"""Progress display, and the estimate of the remaining time."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TextIO

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import duration_text
from ziggurat.errors import ConfigurationError
from ziggurat.events import Progress

__all__ = ["EstimatedTimeLeft", "ProgressBar"]

_EVERY_S = {"bar": 0.25, "lines": 60.0}


class ProgressBar(Callback):
    """Shows epoch, step, rate, time left in the epoch, and chosen values.

    Args:
        names: single numbers of the program to show; only the steps that are shown fetch them.
        mode: ``bar``, ``lines``, ``off``, or ``auto``: a bar where the stream is a terminal, lines otherwise.
        every_s: seconds between two looks; None for a quarter of a second for a bar and a minute for lines.
        stream: where to; None for the standard error stream.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        mode: Literal["auto", "bar", "lines", "off"] = "auto",
        *,
        every_s: float | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if mode not in ("auto", "bar", "lines", "off"):
            raise ConfigurationError(
                "`mode` must be `auto`, `bar`, `lines` or `off`.", received=mode, advice="Choose one of them."
            )
        self._names = tuple(names)
        self._given_mode = mode
        self._given_every_s = every_s
        self._given_stream = stream
        self._clock = clock
        self._mode = mode
        self._bar: Any = None
        self._every_s = 0.0
        self._next_s = 0.0
        self._began_s = 0.0
        self._began_step = 0
        self._fetches = False
        self._values: dict[str, float] = {}

    def hooks(self) -> frozenset[str]:
        """Cost nothing where nothing is shown."""
        if self._given_mode == "off":
            return frozenset()
        return super().hooks() - (set() if self._names else {"before_run", "after_run"})

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names if self._given_mode != "off" else ()

    def before_train(self) -> None:
        """Look at the stream; show the rest of an epoch that is resumed in the middle."""
        self._mode = self._given_mode if self._given_mode != "auto" else "bar" if self._stream.isatty() else "lines"
        self._every_s = _EVERY_S[self._mode] if self._given_every_s is None else self._given_every_s
        if 0 <= self.local_step < self.trainer.steps_per_epoch - 1:
            self.before_epoch()

    def before_epoch(self) -> None:
        """Begin a bar."""
        self._began_s = self._clock()
        self._began_step = self.local_step + 1
        self._look_at(self._began_s + self._every_s)
        if self._mode == "bar":
            from tqdm import tqdm

            self._bar = tqdm(
                total=self.trainer.steps_per_epoch,
                initial=self._began_step,
                desc=f"Epoch {self.epoch_num}/{self.trainer.max_epoch}",
                unit="step",
                file=self._stream,
                mininterval=0,
                miniters=0,
                dynamic_ncols=True,
            )

    def before_run(self) -> Sequence[str]:
        """Ask for the values of a step that will be shown."""
        self._fetches = self._clock() >= self._next_s or self._is_last_step()
        return self._names if self._fetches else ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Keep the values to show."""
        if self._fetches:
            self._values = {name: float(values[name]) for name in self._names}

    def trigger_step(self) -> None:
        """Show where training stands, when it is time; the end of an epoch is shown by ``after_epoch``."""
        if (self._fetches or (not self._names and self._clock() >= self._next_s)) and not self._is_last_step():
            self._show()

    def after_epoch(self) -> None:
        """Show the end of the epoch."""
        self._show()
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def after_train(self) -> None:
        """Close a bar that an error or a stop left open."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    @property
    def _stream(self) -> TextIO:
        return self._given_stream or sys.stderr

    def _is_last_step(self) -> bool:
        return self.trainer.local_step + 1 == self.trainer.steps_per_epoch

    def _look_at(self, next_s: float) -> None:
        self._next_s = next_s
        if not self._names and self._clock is time.perf_counter:
            self.rests_until = (math.inf, next_s)

    def _show(self) -> None:
        self._look_at(self._clock() + self._every_s)
        if self._bar is not None:
            self._bar.set_postfix({name: f"{value:.4g}" for name, value in self._values.items()}, refresh=False)
            self._bar.update(self.local_step + 1 - self._bar.n)
            self._bar.refresh()
        elif self._mode == "lines":
            self._stream.write(self._line() + "\n")
            self._stream.flush()

    def _line(self) -> str:
        done, steps = self.local_step + 1, self.trainer.steps_per_epoch
        took_s = self._clock() - self._began_s
        rate = (done - self._began_step) / took_s if took_s > 0 else 0.0
        parts = [f"epoch {self.epoch_num}/{self.trainer.max_epoch}", f"step {done}/{steps}"]
        if rate > 0:
            parts.append(f"{rate:.4g} steps/s")
            if done < steps:
                parts.append(f"{duration_text((steps - done) / rate)} left in the epoch")
        parts += [f"{name}={value:.4g}" for name, value in self._values.items()]
        return ", ".join(parts)


class EstimatedTimeLeft(Callback):
    """Says about once a second, and after each epoch, how far training is and how long it still takes.

    What it says is a ``Progress`` event. The estimate takes a typical epoch of the last ones (everything in it counts,
    validation too) for the epochs to come, and before the first is complete the mean time of a step in this attempt.
    It is measured anew in every attempt: the next one may have another machine.

    Args:
        last_k_epochs: how many epochs are looked at.
        median: take their median; their mean otherwise.
        every_s: seconds between two events within an epoch.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        last_k_epochs: int = 5,
        median: bool = True,
        *,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if last_k_epochs < 1:
            raise ConfigurationError("`last_k_epochs` must be at least 1.", received=last_k_epochs, advice="Set it so.")
        self._typical = statistics.median if median else statistics.fmean
        self._every_s = every_s
        self._clock = clock
        self._epochs_s: deque[float] = deque(maxlen=last_k_epochs)
        self._attempt_began_s = 0.0
        self._epoch_began_s: float | None = None
        self._epoch_began_steps = 0
        self._next_s = 0.0
        self._said = (0.0, 0, 0.0, 0.0)

    def before_train(self) -> None:
        """Start the clock of the attempt."""
        self._attempt_began_s = now = self._clock()
        self._say_at(now + self._every_s)
        self._epoch_began_s = None
        self._said = (now, self.trainer.timing.steps, self.trainer.timing.wait_s, self.trainer.timing.step_s)

    def before_epoch(self) -> None:
        """End the epoch before with all the work that came after its steps, and start the clock of this one."""
        now = self._clock()
        steps = self.trainer.timing.steps
        if self._epoch_began_s is not None and steps > self._epoch_began_steps:  # not one that was passed over
            self._epochs_s.append(now - self._epoch_began_s)
        self._epoch_began_s, self._epoch_began_steps = now, steps

    def trigger_step(self) -> None:
        """Say how far it is, when it is time."""
        now = self._clock()
        if now >= self._next_s:
            self._say(now)

    def trigger_epoch(self) -> None:
        """Say how far it is."""
        self._say(self._clock())

    def remaining_s(self) -> float | None:
        """Return the estimate; None before the first step."""
        trainer = self.trainer
        steps_left = trainer.max_epoch * trainer.steps_per_epoch - trainer.global_step
        if self._epochs_s:
            return self._typical(self._epochs_s) * steps_left / trainer.steps_per_epoch
        if not trainer.timing.steps:
            return None
        return (self._clock() - self._attempt_began_s) / trainer.timing.steps * steps_left

    def _say_at(self, next_s: float) -> None:
        self._next_s = next_s
        if self._clock is time.perf_counter:
            self.rests_until = (math.inf, next_s)

    def _say(self, now: float) -> None:
        self._say_at(now + self._every_s)
        trainer = self.trainer
        timing = trainer.timing
        then, steps, wait_s, step_s = self._said
        passed_s, waited_s, stepped_s = now - then, timing.wait_s - wait_s, timing.step_s - step_s
        self._said = (now, timing.steps, timing.wait_s, timing.step_s)
        trainer.monitors.put_event(
            Progress(
                time=trainer.monitors.now(),
                epoch=trainer.epoch_num,
                global_step=trainer.global_step,
                total_steps=trainer.max_epoch * trainer.steps_per_epoch,
                remaining_s=self.remaining_s(),
                steps_per_s=(timing.steps - steps) / passed_s if passed_s > 0 else None,
                data_wait_share=waited_s / (waited_s + stepped_s) if waited_s + stepped_s > 0 else None,
            )
        )
