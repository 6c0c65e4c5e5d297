"""Trainer of modules: the engine's one loop, with the usual callbacks and monitors, in one process or in several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from ziggurat.dataflow import DataFlow
from ziggurat.engine.callback import Callback, bind_folder, innermost
from ziggurat.engine.callbacks.defaults import default_monitors
from ziggurat.engine.callbacks.progress import EstimatedTimeLeft, ProgressBar
from ziggurat.engine.callbacks.saving import ModelSaver
from ziggurat.engine.callbacks.summaries import LogScalars
from ziggurat.engine.callbacks.timing import StepTimes, ThroughputTracker
from ziggurat.engine.host import training_host
from ziggurat.engine.monitor import Monitor, say
from ziggurat.engine.monitors.scalar_printer import ScalarPrinter
from ziggurat.engine.run_state import RunState
from ziggurat.engine.trainer import Trainer as EngineTrainer
from ziggurat.errors import UsageError
from ziggurat.layout import JobFolder
from ziggurat.torch.callbacks import FiniteLoss, Together
from ziggurat.torch.loaders import LoaderPasses
from ziggurat.torch.program import ModuleProgram

__all__ = ["Trainer", "default_callbacks"]

_POINTS = 8


def default_callbacks(names: Sequence[str] | None = None) -> list[Callback]:
    """Return the callbacks that ``Trainer`` puts behind the user's own.

    Args:
        names: single numbers to put on curves, means over all steps; None for what the program offers.
    """
    return [
        LogScalars(names, per_epoch=_POINTS, mean=True),
        FiniteLoss(),
        ThroughputTracker(),
        StepTimes(),
        EstimatedTimeLeft(),
        ProgressBar(),
    ]


class Trainer(EngineTrainer):
    """Trains a ``ModuleProgram``.

    In a job of the studio (``ziggurat submit``), files go to the folder of the job, and it resumes by itself. Of
    several processes, the first alone calls the callbacks and writes; every batch is split among all of them, so each
    process is given the same batches, those of the whole step.

    Args:
        program: what a step is.
        batches: a ``DataLoader``, a ``DataFlow``, or any iterable of batches that can be iterated again.
        callbacks: the own ones, in the order in which their hooks are called.
        extra_callbacks: behind them; None for ``default_callbacks()``.
        monitors: sinks of the numbers; None for files in the folder and lines on the screen.
        folder: where checkpoints, curves and events go; None to keep none.
        steps_per_epoch: steps in an epoch; ``len(batches)`` where it is not given.

    Raises:
        UsageError: where ``steps_per_epoch`` is not given and the batches have no length.
    """

    program: ModuleProgram  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        program: ModuleProgram,
        batches: Iterable[Any],
        *,
        callbacks: Sequence[Callback] = (),
        extra_callbacks: Sequence[Callback] | None = None,
        monitors: Sequence[Monitor] | None = None,
        folder: str | Path | None = None,
        steps_per_epoch: int | None = None,
    ) -> None:
        self._is_hosted = training_host() is not None
        self._asked_to_stop: str | None = None
        self._asked_to_finish: str | None = None
        added = default_callbacks() if extra_callbacks is None else extra_callbacks
        own, sinks = [*callbacks, *added], self._sinks(monitors, folder)
        if folder is not None and not self._is_hosted:
            bind_folder([*own, *sinks], JobFolder(Path(folder)))
        processes = program.processes
        if processes.size > 1:
            own = [each for each in own if processes.is_first or not innermost(each).chief_only] + [Together()]
            sinks = sinks if processes.is_first else []
        if isinstance(batches, DataLoader):
            batches = LoaderPasses(batches, program.seed)
        super().__init__(program, batches, callbacks=own, monitors=sinks, steps_per_epoch=steps_per_epoch)

    # ---- what is trained

    def train(self, max_epoch: int, *, resume: bool = False) -> None:
        """Train until ``max_epoch`` epochs are complete, a callback finishes it, or a stop is requested.

        Args:
            max_epoch: number of the last epoch.
            resume: go on from the newest checkpoint of the folder, where there is one.

        Raises:
            Exception: whatever the module, the data or a callback raised.
        """
        if resume:
            self.resume()
        if self.program.processes.size > 1:
            self._begin_alike()
        super().train(max_epoch)

    def resume(self) -> bool:
        """Take back the newest checkpoint of the folder; return whether there is one.

        Weights, optimizer, schedules, callbacks, random generators and the position of the data are as they were. In a
        job of the studio it does nothing: the job resumes by itself.

        Raises:
            UsageError: where no ``ModelSaver`` says where checkpoints are.
            CheckpointError: where there are checkpoints, and none of them loads or fits.
        """
        if self._is_hosted or not self.program.processes.is_first:
            return False
        self._set_up()
        savers = [each for each in map(innermost, self.callbacks) if isinstance(each, ModelSaver)]
        if not savers:
            raise UsageError(
                "None of the callbacks is a `ModelSaver`, from whose checkpoints a training is resumed.",
                advice="Add `ModelSaver()` to `callbacks`, and give `folder`.",
            )
        store = savers[0].desk.store
        found = store.latest()
        if found is None:
            return False
        info, state, problems = found
        self.load_state(state)
        store.remove_after(info.step)
        for problem in problems:
            say(self, f"{problem} It goes on from {info.name}.", level="warning")
        return True

    # ---- several processes

    def request_stop(self, reason: str = "asked to stop") -> None:
        """Ask for an end of all processes within one step, after everything was saved."""
        if self.program.processes.size == 1:
            super().request_stop(reason)
        else:
            self._asked_to_stop = reason

    def finish(self, reason: str) -> None:
        """Declare the training complete in all processes: it ends within one step and is not resumed."""
        if self.program.processes.size == 1:
            super().finish(reason)
        else:
            self._asked_to_finish = reason

    def asked(self) -> tuple[float, float]:
        """Return whether this process was asked to stop, and to finish, as 0 or 1."""
        return float(self._asked_to_stop is not None), float(self._asked_to_finish is not None)

    def end_together(self, *, stop: bool, finish: bool) -> None:
        """End behind the step or epoch under way: all processes do so."""
        if finish:
            super().finish(self._asked_to_finish or "another process found the training complete")
        if stop:
            super().request_stop(self._asked_to_stop or "another process was asked to stop")

    def _begin_alike(self) -> None:
        """Give all processes the state of the first one: weights, position and seeds of the data, generators."""
        processes = self.program.processes
        self._set_up()
        flow = self.batches.source
        if processes.is_first and isinstance(flow, DataFlow):
            flow.reset_state()  # from here on it has a seed
        held = self.state() if processes.is_first else None
        state: RunState = processes.from_first(held)
        if not processes.is_first:
            self.load_state(state)

    def _set_up(self) -> None:
        try:
            self.setup()
        except BaseException as error:
            self._after_train(error)  # there will be no training that could call it
            raise

    def _sinks(self, monitors: Sequence[Monitor] | None, folder: str | Path | None) -> list[Monitor]:
        if monitors is not None:
            return list(monitors)
        return default_monitors() if folder is not None or self._is_hosted else [ScalarPrinter()]
