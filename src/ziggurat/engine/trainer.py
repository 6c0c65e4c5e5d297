"""Training loop: a single short loop (``Trainer._run_epoch`` and below) that every framework uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.engine.batches import BatchCycle
from ziggurat.engine.callback import HOOKS, Callback
from ziggurat.engine.monitor import Monitor, Monitors
from ziggurat.engine.program import Program
from ziggurat.engine.random_state import global_random_state, load_global_random_state
from ziggurat.errors import CheckpointError, UnknownNameError, UsageError

__all__ = ["RunState", "StepTiming", "StopTraining", "Trainer"]


_COUNTERS: Final = ("epoch_num", "global_step", "local_step", "finish_reason")


class StopTraining(Exception):  # noqa: N818 - Tensorpack's name, and no error
    """Raised by a callback that finds the training complete before its last epoch; the other hooks still run."""


class _Leave(Exception):  # noqa: N818
    """Leaves the loop after everything was saved."""


class _BreakOff(BaseException):
    """Leaves a wait for a batch; no data flow takes it for an error of its own."""


@dataclass
class StepTiming:
    """Where the time of an attempt went.

    Args:
        steps: steps done in this attempt.
        wait_s: seconds that the loop waited for batches.
        step_s: seconds inside ``program.step``.
        last_wait_s: seconds that the newest step waited.
        last_step_s: seconds of the newest step.
    """

    steps: int = 0
    wait_s: float = 0.0
    step_s: float = 0.0
    last_wait_s: float = 0.0
    last_step_s: float = 0.0


@dataclass(frozen=True)
class RunState:
    """All that decides how a training goes on.

    Args:
        meta: counters, callbacks, monitors, data position and random generators, as JSON values.
        arrays: the program's arrays by name.
    """

    meta: dict[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


class Trainer:
    """Takes steps, epoch after epoch, and lets callbacks and monitors do everything else.

    Args:
        program: what a step is.
        batches: iterable of batches that can be iterated again: a ``DataFlow``, a list.
        callbacks: in the order in which their hooks are called.
        monitors: sinks of the numbers; their hooks come after all callbacks'.
        steps_per_epoch: steps in an epoch; ``len(batches)`` where it is not given.
        clock: seconds since 1970, for the times of numbers and events.

    Raises:
        UsageError: where ``steps_per_epoch`` is not given and the batches have no length, or is below 1.
    """

    def __init__(
        self,
        program: Program,
        batches: Iterable[Any],
        *,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        steps_per_epoch: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.program = program
        self.batches = BatchCycle(batches)
        self.steps_per_epoch = _steps_per_epoch(batches, steps_per_epoch)
        self.callbacks: list[Callback] = [*callbacks, *monitors]
        self.monitors = Monitors(monitors, self, clock)
        self._clock = clock
        self.max_epoch = 0
        self.epoch_num = 0
        self.global_step = 0
        self.local_step = -1
        self.batch: Any = None
        self.timing = StepTiming()
        self.stop_reason: str | None = None
        self.finish_reason: str | None = None
        self.is_waiting = False
        self.progressed_at = 0.0
        self._steps_before_load = 0
        self._in_epoch = False
        self._is_set_up = False
        self._attention = False
        self._actions: list[Callable[[], None]] = []
        self._hooks: dict[str, list[tuple[Callback, Callable[..., Any]]]] = {}

    # ---- what others call

    @property
    def outcome(self) -> str:
        """``stopped`` where somebody asked for it and something is left to do, else ``done``."""
        is_left = self.finish_reason is None and (self._in_epoch or self.epoch_num < self.max_epoch)
        return "stopped" if self.stop_reason is not None and is_left else "done"

    def put(self, tag: str, value: Any) -> None:
        """Put one number on the curve ``tag``."""
        self.monitors.put_scalar(tag, value)

    def request_stop(self, reason: str = "asked to stop") -> None:
        """Ask for an end within one step, after everything was saved. Any thread and any signal handler may call it."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self._attention = True

    def break_off_waiting(self) -> None:
        """Leave the loop at once where a stop was asked for while it waits for a batch.

        Only for a signal handler in the thread that trains: it raises out of whatever the data is doing. What the data
        had made of that batch is forgotten; a resumed training passes over the batches before it.
        """
        if self.is_waiting and self.stop_reason is not None:
            self.is_waiting = False
            raise _BreakOff

    def note_progress(self) -> None:
        """Say that slow work between steps goes on, so that the training is not taken for hung."""
        self.progressed_at = self._clock()

    def finish(self, reason: str) -> None:
        """Declare the training complete: it ends within one step and is not resumed."""
        if self.finish_reason is None:
            self.finish_reason = reason
        self._attention = True

    def at_boundary(self, action: Callable[[], None]) -> None:
        """Call ``action`` once every callback has done its part for this step or epoch: the state is whole then.

        A saver saves there, so that its place in the list does not matter.
        """
        self._actions.append(action)
        self._attention = True

    def setup(self) -> None:
        """Set up the callbacks and tell the program what will be fetched. ``train`` does it by itself."""
        if self._is_set_up:
            return
        self._is_set_up = True
        _give_names(self.callbacks)
        for callback in self.callbacks:
            callback.trainer = self
        self._hooks = {
            hook: [(callback, getattr(callback, hook)) for callback in self.callbacks if hook in callback.hooks()]
            for hook in HOOKS
        }
        self._call("setup_graph")
        self.program.declare(_declared_names(self.program, self.callbacks))

    def state(self) -> RunState:
        """Return the run state; whole only at a boundary (``at_boundary``), or while no training is under way."""
        meta = {
            **{name: getattr(self, name) for name in _COUNTERS},
            "in_epoch": self._in_epoch,
            "steps_per_epoch": self.steps_per_epoch,
            "callbacks": {callback.name: callback.state() for callback in self.callbacks},
            "latest": self.monitors.state(),
            "batches": self.batches.state(),
            "random": global_random_state(),
        }
        return RunState(meta, self.program.state())

    def load_state(self, state: RunState) -> None:
        """Take back a run state; the next ``train`` goes on from there.

        Raises:
            CheckpointError: where the state is of another network or another epoch length.
        """
        try:
            self.setup()
        except BaseException as error:
            self._after_train(error)  # there will be no training that could call it
            raise
        meta = state.meta
        if meta["in_epoch"] and meta["steps_per_epoch"] != self.steps_per_epoch:
            raise CheckpointError(
                "An epoch that was left in the middle is resumed with the same `steps_per_epoch`.",
                received=f"{self.steps_per_epoch} instead of {meta['steps_per_epoch']}",
                advice="Set it as it was, or resume from a checkpoint at the end of an epoch.",
            )
        self.program.load_state(state.arrays)
        for name in _COUNTERS:
            setattr(self, name, meta[name])
        self._in_epoch = meta["in_epoch"]
        self.monitors.load_state(meta["latest"])
        self.batches.load_state(meta["batches"])
        self._steps_before_load = self.timing.steps
        saved = meta["callbacks"]
        for callback in self.callbacks:
            if saved.get(callback.name) is not None:
                callback.load_state(saved[callback.name])
        load_global_random_state(meta["random"])

    # ---- the loop

    def train(self, max_epoch: int) -> None:
        """Train until ``max_epoch`` epochs are complete, a callback finishes it, or somebody asks for a stop.

        Raises:
            Exception: whatever the program, the data or a callback raised, after ``after_train`` of every callback.
        """
        self.max_epoch = max_epoch
        failure: BaseException | None = None
        try:
            self.setup()
            self._leave_if_stopped()
            self._call("before_train")
            self._leave_if_stopped()
            self._settle()
            while self._in_epoch or self.epoch_num < max_epoch:
                self._run_epoch()
        except _Leave:
            pass
        except BaseException as error:
            failure = error
        failure = self._after_train(failure)
        if failure is not None:
            raise failure

    def _run_epoch(self) -> None:
        if not self._in_epoch:
            self.epoch_num += 1
            self.local_step = -1
            self._in_epoch = True
            self._call("before_epoch")
        try:
            self._run_steps()
        except _BreakOff:
            self._leave_waiting()
        self._call("after_epoch")
        self._call("trigger_epoch")
        self._in_epoch = False
        self._settle()

    def _run_steps(self) -> None:
        clock, timing, step = time.perf_counter, self.timing, self.program.step
        before_run, after_run, trigger_step = (
            self._hooks[hook] for hook in ("before_run", "after_run", "trigger_step")
        )
        batches = iter(self.batches)
        names: Sequence[str] = ()
        for self.local_step in range(self.local_step + 1, self.steps_per_epoch):  # noqa: B020
            if before_run:
                names = self._names_to_fetch(before_run)
            began = clock()
            self.is_waiting = True
            self.batch = batch = next(batches)
            self.is_waiting = False
            loaded = clock()
            values = step(batch, names)
            ended = clock()
            timing.last_wait_s = loaded - began
            timing.last_step_s = ended - loaded
            timing.wait_s += timing.last_wait_s
            timing.step_s += timing.last_step_s
            timing.steps += 1
            self.global_step += 1
            for callback, hook in after_run:
                try:
                    hook(values)
                except BaseException as error:
                    self._hook_raised(error, callback, "after_run")
            for callback, hook in trigger_step:
                try:
                    hook()
                except BaseException as error:
                    self._hook_raised(error, callback, "trigger_step")
            if self._attention:
                self._settle()

    def _settle(self) -> None:
        """Do what waited for a boundary; leave the loop where somebody asked for it."""
        self._attention = False
        self._do_actions()
        if self.stop_reason is not None or self.finish_reason is not None:
            self._call("before_stop")
            self._do_actions()
            raise _Leave

    # ---- helpers

    def _do_actions(self) -> None:
        while self._actions:
            try:
                self._actions.pop(0)()
            except StopTraining as error:
                self.finish(str(error) or "a callback found the training complete")

    def _leave_if_stopped(self) -> None:
        """Leave before the first step: nothing was done in this attempt but what the next one begins with, too."""
        if self.stop_reason is not None and self.finish_reason is None:
            raise _Leave

    def _leave_waiting(self) -> None:
        """Return to the end of the last step, and leave from there."""
        taken = self.timing.steps - self._steps_before_load
        if not taken:
            raise _Leave
        self.local_step -= 1
        self.batches.go_back_to(taken)
        self._steps_before_load = self.timing.steps
        self._settle()

    def _names_to_fetch(self, before_run: list[tuple[Callback, Callable[..., Any]]]) -> Sequence[str]:
        names: Sequence[str] = ()
        for callback, hook in before_run:
            try:
                wanted = hook()
            except BaseException as error:
                self._hook_raised(error, callback, "before_run")
                continue
            if wanted and wanted is not names:
                names = tuple(dict.fromkeys((*names, *wanted))) if names else wanted
        return names

    def _call(self, hook: str) -> None:
        for callback, method in self._hooks[hook]:
            try:
                method()
            except BaseException as error:
                self._hook_raised(error, callback, hook)

    def _hook_raised(self, error: BaseException, callback: Callback, hook: str) -> None:
        if isinstance(error, StopTraining):
            self.finish(str(error) or f"{callback.name} found the training complete")
            return
        error.add_note(
            f"Raised by {hook} of callback {callback.name}, epoch {self.epoch_num}, step {self.global_step}."
        )
        raise error

    def _after_train(self, failure: BaseException | None) -> BaseException | None:
        """Call ``after_train`` of every callback, whatever they raise; return the first error."""
        self.is_waiting = False
        for callback in self.callbacks:
            try:
                callback.after_train()
            except BaseException as error:
                if failure is None:
                    error.add_note(f"Raised by after_train of callback {callback.name}.")
                    failure = error
                else:
                    failure.add_note(f"Then after_train of callback {callback.name} raised {error!r}.")
        self.batches.close()
        return failure


def _steps_per_epoch(batches: Iterable[Any], given: int | None) -> int:
    if given is None:
        try:
            given = len(batches)  # pyright: ignore[reportArgumentType]
        except TypeError as error:
            raise UsageError(
                "`steps_per_epoch` must be given where the batches have no length.",
                received=type(batches).__name__,
                advice="Set `steps_per_epoch`.",
            ) from error
    if given < 1:
        raise UsageError(
            "`steps_per_epoch` must be at least 1.",
            received=given,
            advice="A batch may be larger than the data: make `batch_size` smaller.",
        )
    return given


def _give_names(callbacks: Sequence[Callback]) -> None:
    taken: set[str] = set()
    for callback in callbacks:
        base = name = callback.name or type(callback).__name__
        number = 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        callback.name = name


def _declared_names(program: Program, callbacks: Sequence[Callback]) -> list[str]:
    known = set(program.names())
    declared = list(dict.fromkeys(name for callback in callbacks for name in callback.declares()))
    for name in declared:
        if name not in known:
            raise UnknownNameError("value of this program", name, known)
    return declared
