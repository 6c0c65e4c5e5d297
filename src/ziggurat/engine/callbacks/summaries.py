"""Logging of step values: curves, averages, summaries of a batch, and values for a function or a file.

A framework can fetch a value only with a step, and builds that step once. So a callback *declares* its names before
the first step and says *before* each step whether it wants them from it.

A program may define what to log: with a method ``summary_names()`` (values to log unchanged), and a method
``moving_summary_names()`` (scalars to log as a moving average; a sequence, or a mapping from name to decay). Both are
optional; a callback created without names uses them.

Non-scalar summaries (images, histograms) are made once per epoch, from one batch, by a program with
``SupportsSummaries``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.engine.callback import AWAKE, Callback, NeedsFolder, missing_folder
from ziggurat.engine.callbacks.batches import plain_array, write_arrays
from ziggurat.engine.callbacks.periods import Period, Recurring
from ziggurat.engine.capabilities import HasMovingSummaries, HasSummaries, SupportsSummaries
from ziggurat.engine.monitor import Monitor, say
from ziggurat.engine.step_values import StepSeries
from ziggurat.errors import ConfigurationError, NetworkCodeError, TrainingError
from ziggurat.layout import JobFolder

__all__ = [
    "DumpTensors",
    "LogScalars",
    "MergeAllSummaries",
    "MovingAverageSummary",
    "ProcessTensors",
    "SimpleMovingAverage",
    "SummariseBatch",
]


_NEVER: Final = 1 << 62


@dataclass
class _Sums:
    """Sums of values over steps."""

    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def add(self, columns: Mapping[str, Sequence[float]]) -> None:
        for name, column in columns.items():
            self.sums[name] = functools.reduce(operator.add, column, self.sums.get(name, 0.0))
        self.count += max(map(len, columns.values()), default=0)

    def means(self) -> dict[str, float]:
        return {name: total / self.count for name, total in self.sums.items()}


class LogScalars(Callback):
    """Puts values of the program on the curves of their names.

    Args:
        names: values to log, single numbers each; None for what the program offers by ``summary_names()``.
        every_k_steps: log the values of every k-th step; None for none but the following.
        at_epoch_end: log the last step of each epoch.
        per_epoch: with ``at_epoch_end``, also log at so many places of an epoch, evenly, its end among them.
        mean: put the mean over all steps since the last logging instead of one step's value. A program that
            ``SupportsRecording`` keeps the values until then; from any other, every step fetches them. One NaN makes
            the mean NaN.
        hyperparameters: names of hyperparameters to log with them: the values that the logged step used.
        per_doubling: log additional steps between these: every step at first, and so many each time the number of
            steps doubles, until the others are closer together. With ``mean``, such a point is the mean since the point
            before, and changes nothing of the others. None for no additional ones.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        every_k_steps: int | None = None,
        *,
        at_epoch_end: bool = True,
        per_epoch: int = 1,
        mean: bool = False,
        hyperparameters: Sequence[str] = (),
        per_doubling: int | None = None,
    ) -> None:
        self._given_names = None if names is None else tuple(names)
        self._every_k_steps = Period(every_k_steps, None).every_k_steps
        self._at_epoch_end = at_epoch_end
        self._per_epoch = per_epoch
        self._mean = mean
        self._hyperparameters = tuple(hyperparameters)
        self._names: tuple[str, ...] = ()
        self._is_logging_step = False
        self._whole, self._part = _Sums(), _Sums()
        self._per_doubling = per_doubling
        self._next_extra = 0 if per_doubling else _NEVER
        self._series: StepSeries | None = None

    def hooks(self) -> frozenset[str]:
        """Cost nothing where there is nothing to log."""
        self._names = self._found_names()
        idle = frozenset() if self._series is None else self._series.idle_hooks()
        return super().hooks() - idle if self._names or self._hyperparameters else frozenset()

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def setup_graph(self) -> None:
        """Ask for the values of all steps where their mean is wanted."""
        self._series = self.trainer.step_values.series(self._names, callback=self) if self._mean else None

    def before_run(self) -> Sequence[str]:
        """Ask for the values where the step to come is a logging step."""
        if self._series is not None:
            return self._series.before_run()
        coming = self.trainer.global_step + 1
        self._is_logging_step = is_due = self._is_due(coming) or self._is_extra(coming)
        return self._names if is_due else ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Put the values of a logging step."""
        series = self._series
        if series is None:
            if self._is_logging_step:
                self._put(values)
            return
        if series.fetched:
            series.after_run(values)
        step = self.trainer.global_step
        if self._is_due(step):
            self._sum_up()
            self._put(self._whole.means())
            self._whole, self._part = _Sums(), _Sums()
        elif step >= self._next_extra and self._is_extra(step):
            self._sum_up()
            self._put(self._part.means())
            self._part = _Sums()
        if not series.fetched:
            self.rests_until = (min(self._next_due(step), self._next_extra), math.inf)

    def state(self) -> Any:
        """Return the sums since the last logging."""
        self._sum_up()
        whole, part = self._whole, self._part
        return {"sums": whole.sums, "count": whole.count, "part_sums": part.sums, "part_count": part.count}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        if self._series is not None:
            self._series.take()
        self._whole = _Sums(dict(state["sums"]), state["count"])
        self._part = _Sums(dict(state.get("part_sums", {})), state.get("part_count", 0))  # 0.1 had none
        self._next_extra = 0 if self._per_doubling else _NEVER
        self.rests_until = AWAKE

    def _sum_up(self) -> None:
        columns = {} if self._series is None else self._series.take()
        self._whole.add(columns)
        if self._per_doubling:
            self._part.add(columns)

    def _is_due(self, global_step: int) -> bool:
        trainer, k = self.trainer, self._every_k_steps
        if k is not None and global_step % k == 0:
            return True
        if not self._at_epoch_end:
            return False
        step, steps = trainer.local_step, trainer.steps_per_epoch
        return (step + 1) * self._per_epoch // steps > step * self._per_epoch // steps

    def _next_due(self, global_step: int) -> float:
        """Return the first step behind the newest one, ``global_step``, that is due."""
        k = self._every_k_steps
        found = math.inf if k is None else global_step - global_step % k + k
        if not self._at_epoch_end:
            return found
        done, steps, many = self.trainer.local_step + 1, self.trainer.steps_per_epoch, self._per_epoch
        place = done * many // steps + 1  # of the next one in this epoch; behind its last, in the epoch to come
        return min(found, global_step + -(-place * steps // many) - done)

    def _is_extra(self, global_step: int) -> bool:
        """Return whether a step is an additional one, and note from which step on the next one can be."""
        many = self._per_doubling
        if many is None:
            return False
        interval = 1 << max(0, (global_step // many).bit_length() - 1)
        if self._at_epoch_end and interval * self._per_epoch >= self.trainer.steps_per_epoch:
            self._next_extra = _NEVER
            return False
        self._next_extra = global_step - global_step % interval + interval
        return global_step % interval == 0

    def _put(self, values: Mapping[str, Any]) -> None:
        monitors = self.trainer.monitors
        for name in self._names:
            value = values[name]
            if isinstance(value, bytes | np.bytes_):
                monitors.put_summary(bytes(value))
            else:
                monitors.put_scalar(name, value)
        if self._hyperparameters:
            held = self.trainer.program.hyperparameters()
            for name in self._hyperparameters:
                monitors.put_scalar(name, held[name])

    def _found_names(self) -> tuple[str, ...]:
        if self._given_names is not None:
            return self._given_names
        program = self.trainer.program
        return tuple(program.summary_names()) if isinstance(program, HasSummaries) else ()


class MergeAllSummaries(LogScalars):
    """Puts all summaries of the program: in the last step of each epoch, and every ``period`` steps.

    Numbers become scalars; serialized summaries go to TensorBoard as they are.

    Args:
        period: also every so many steps; 0 for not.
        names: these values instead of the program's.
    """

    def __init__(self, period: int = 0, names: Sequence[str] | None = None) -> None:
        super().__init__(names, period or None)


class SummariseBatch(Recurring):
    """Puts what the network's author summarizes of the newest batch: images, histograms and the like.

    It costs one evaluation of the batch, and nothing between. The training is the same with and without it: an error
    while it summarizes, such as a histogram of NaN, is said once. Where the program summarizes nothing, or no monitor
    takes summaries, it does nothing.

    Args:
        every_k_epochs: at the end of every k-th epoch; None for steps only.
        every_k_steps: also every k steps; None for not.
    """

    def __init__(self, every_k_epochs: int | None = 1, *, every_k_steps: int | None = None) -> None:
        super().__init__(every_k_steps=every_k_steps, every_k_epochs=every_k_epochs)
        self._is_problem_said = False

    def hooks(self) -> frozenset[str]:
        """Return none where there is nothing to do."""
        takers = [each for each in self.trainer.monitors if type(each).process_summary is not Monitor.process_summary]
        return super().hooks() if takers and isinstance(self.trainer.program, SupportsSummaries) else frozenset()

    def trigger(self) -> None:
        """Summarize the newest batch."""
        trainer = self.trainer
        if trainer.batch is None:  # an attempt that goes on behind the last step of an epoch
            return
        program: Any = trainer.program
        try:
            summary = program.summarise(trainer.batch)
        except (NetworkCodeError, TrainingError) as error:
            if not self._is_problem_said:
                self._is_problem_said = True
                say(trainer, f"Summaries are left out. {error}", level="warning")
            return
        if summary:
            trainer.monitors.put_summary(summary)


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
        is_idle = self._series is not None and self._series.is_of_every_step
        return super().hooks() - ({"before_run", "after_run"} if is_idle else set()) if self._decays else frozenset()

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return tuple(self._decays)

    def setup_graph(self) -> None:
        """Ask for the values of all steps."""
        self._series = self.trainer.step_values.series(tuple(self._decays), callback=self)

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

    A graph's ``cost:0`` gives ``cost/SMA``.

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

    def hooks(self) -> frozenset[str]:
        """Ask for nothing that the program keeps."""
        return super().hooks() - (frozenset() if self._series is None else self._series.idle_hooks())

    def setup_graph(self) -> None:
        """Ask for the values of all steps; no window is longer than what is held."""
        self._series = self.trainer.step_values.series(self._names, last=self._size, callback=self)

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
                    self.trainer.put(f"{name.removesuffix(':0')}/SMA", sum(window) / len(window))

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


class ProcessTensors(Callback):
    """Fetches values with every step and calls a function with them.

    >>> ProcessTensors(["cost", "accuracy"], lambda cost, accuracy: print(cost, accuracy))

    Args:
        names: values of the program.
        fn: called as ``fn(*values)``, in the order of the names.
    """

    def __init__(self, names: Sequence[str], fn: Callable[..., object]) -> None:
        self._names = tuple(names)
        self._function = fn

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step."""
        return self._names

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Call the function."""
        self._function(*(values[name] for name in self._names))


class DumpTensors(ProcessTensors, NeedsFolder):
    """Writes values of every step to ``DumpTensor-<step>.npz``; ``PeriodicCallback`` makes it rarer.

    Args:
        names: values of the program.
        folder: where to; where it is left out, ``bind_folder`` gives the folder of the job.

    Raises:
        StorageError: from the training, where the disk is full.
    """

    def __init__(self, names: Sequence[str], folder: Path | None = None) -> None:
        super().__init__(names, self._write)
        self._folder = None if folder is None else Path(folder)

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another folder was given."""
        self._folder = self._folder or folder.path

    def setup_graph(self) -> None:
        """Find the folder, so that a missing one is an error before any work is done."""
        if self._folder is None:
            raise missing_folder(self)

    def _write(self, *values: Any) -> None:
        assert self._folder is not None
        arrays = {name: plain_array(value) for name, value in zip(self._names, values)}
        write_arrays(self._folder / f"DumpTensor-{self.global_step}.npz", arrays)
