"""Values of single steps for callbacks that can wait for them: averages, windows, the black box.

A program that ``SupportsRecording`` keeps such values where they are computed, and they are fetched many steps at a
time. From any other program each step fetches them. A callback does not see the difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ziggurat.engine.program import SupportsRecording

if TYPE_CHECKING:
    from ziggurat.engine.callback import Callback
    from ziggurat.engine.trainer import Trainer

__all__ = ["FETCH_AFTER", "StepSeries", "StepValues"]

FETCH_AFTER: Final = 4096
"""Steps after which values are fetched although no callback took them, so that memory stays bounded."""


class StepSeries:
    """Values of the steps that one callback takes part in. ``StepValues.series`` makes it.

    The callback passes ``before_run`` and ``after_run`` on to it, and calls ``take`` when it needs the values.

    Args:
        values: what fetches for all series of a trainer.
        names: single numbers of the program.
        last: how many steps to hold; None for all since the last ``take``.
    """

    def __init__(self, values: StepValues, names: Sequence[str], last: int | None) -> None:
        self.fetched = tuple(names)
        """Names that the program does not keep: each step that the callback takes part in fetches them."""
        self._values = values
        self._timing = values.timing
        self._names = tuple(names)
        self._kept: tuple[str, ...] = ()
        self._steps: list[int] = []
        self._columns: dict[str, deque[float]] = {name: deque(maxlen=last) for name in names}
        self.is_of_every_step = False
        """Whether it takes part in all steps by itself: the program keeps its values, and no wrapper picks steps."""

    def idle_hooks(self) -> frozenset[str]:
        """Return the hooks of the callback that the series has no use for."""
        return frozenset({"before_run"} if self.is_of_every_step else ())

    def before_run(self) -> Sequence[str]:
        """Take part in the step to come; return the names that must be fetched with it."""
        if self._kept:
            steps, coming = self._steps, self._timing.steps
            if not steps or steps[-1] != coming:  # a wait for a batch may have been broken off before
                steps.append(coming)
        return self.fetched

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Hold the values that were fetched with the step."""
        for name in self.fetched:
            self._columns[name].append(float(values[name]))

    def take(self) -> dict[str, list[float]]:
        """Return name → values of the steps that it took part in since the last call, oldest first."""
        if self._steps or self.is_of_every_step:
            self._values.fetch()
        taken = {name: list(column) for name, column in self._columns.items()}
        for column in self._columns.values():
            column.clear()
        return taken

    def use_kept(self, kept: Sequence[str], is_unwrapped: bool) -> None:
        """Fetch no value with a step that the program keeps; take part in all steps where no wrapper picks them."""
        self._kept = tuple(name for name in self._names if name in kept)
        self.fetched = tuple(name for name in self._names if name not in kept)
        self.is_of_every_step = is_unwrapped and not self.fetched

    def receive(self, first: int, count: int, columns: Mapping[str, Sequence[float]]) -> None:
        """Pick the own steps from what the program kept.

        Args:
            first: number of the first step, from 0; below 0 where the program took steps that are not of the training.
            count: number of steps.
            columns: name → value of each step.
        """
        if self.is_of_every_step:
            for name, own in self._columns.items():
                own.extend(columns[name][max(0, -first) :])
            return
        steps = [step - first for step in self._steps if first <= step < first + count]
        self._steps = [step for step in self._steps if step >= first + count]
        for name in self._kept:
            column = columns[name]
            self._columns[name].extend(column if len(steps) == count else [column[step] for step in steps])


class StepValues:
    """All series of a trainer.

    Args:
        trainer: whose program it is about.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.timing = trainer.timing
        """Counts the steps of the trainer: their number is that of the step to come."""
        self._trainer = trainer
        self._series: list[tuple[Callback | None, StepSeries]] = []
        self._watched: dict[str, list[tuple[Callback, Callable[[str], None]]]] = {}
        self._source: SupportsRecording | None = None
        self._fetched_at = 0

    def series(self, names: Sequence[str], *, last: int | None = None, callback: Callback | None = None) -> StepSeries:
        """Return the series of a callback, which asks for it in ``setup_graph``.

        Args:
            names: single numbers of the program; the callback declares them, too.
            last: how many steps to hold; None for all since the last ``take``.
            callback: the callback, where its ``hooks()`` leaves out the ``idle_hooks()`` of the series; None where its
                ``before_run`` is to be called with every step.
        """
        made = StepSeries(self, names, last)
        self._series.append((callback, made))
        return made

    def watch(self, callback: Callback, names: Sequence[str], found: Callable[[str], None]) -> None:
        """Let the program look for NaN and infinity in values that it keeps: no step has to fetch them for that.

        Values that are fetched are for the callback to look at.

        Args:
            callback: the callback that watches.
            names: single numbers of the program; those of its series.
            found: called with a name directly after the first step whose value is not finite; raises.
        """
        for name in names:
            self._watched.setdefault(name, []).append((callback, found))

    def watching(self, name: str) -> list[tuple[Callback, Callable[[str], None]]]:
        """Return the callbacks that watch a value, each with what to call."""
        return self._watched.get(name, [])

    def declare(self) -> None:
        """Tell the program what to keep: once, before ``Program.declare``."""
        program = self._trainer.program
        if not isinstance(program, SupportsRecording):
            return
        wanted = list(dict.fromkeys(name for _, series in self._series for name in series.fetched))
        self._source = program
        kept = program.record(wanted, tuple(self._watched))
        for callback, series in self._series:
            series.use_kept(kept, any(each is callback for each in self._trainer.callbacks))

    def fetch(self) -> None:
        """Hand what the program kept to the series."""
        if self._source is None or self._fetched_at == self.timing.steps:
            return
        self._fetched_at = self.timing.steps
        columns = {name: values.tolist() for name, values in self._source.recorded().items()}
        count = min(map(len, columns.values()), default=0)
        for _, series in self._series:
            series.receive(self.timing.steps - count, count, columns)
