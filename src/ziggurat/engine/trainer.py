"""Training loop: a single short loop (``Trainer._run_epoch`` and below) that every framework uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.callback_calls import CallbackCalls, declared_names, end_training
from ziggurat.engine.feed import BatchCycle, Feed, steps_in_pass
from ziggurat.engine.host import training_host
from ziggurat.engine.interruption import BreakOff, Interruptible, LeaveLoop
from ziggurat.engine.monitor import Monitor, Monitors
from ziggurat.engine.program import NonFiniteStep, Program
from ziggurat.engine.run_state import RunState, StepTiming, load_run_state, run_state
from ziggurat.engine.step_values import FETCH_AFTER, StepValues

__all__ = ["Trainer"]


class Trainer(Interruptible):
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
        super().__init__()
        self.program = program
        self.batches = BatchCycle(batches)
        self.feed: Feed | None = None
        """The way of the batches into the program; there from the end of the set-up on."""
        self.steps_per_epoch = steps_in_pass(batches, steps_per_epoch)
        self.callbacks: list[Callback] = [*callbacks, *monitors]
        self.monitors = Monitors(monitors, self, clock)
        self.max_epoch = 0
        self.epoch_num = 0
        self.global_step = 0
        self.local_step = -1
        self.in_epoch = False
        self.batch: Any = None
        self.timing = StepTiming()
        self.step_values = StepValues(self)
        self.progressed_at = 0.0
        self._steps_before_load = 0
        self._hooks: CallbackCalls | None = None

    @property
    def outcome(self) -> str:
        """``stopped`` if a stop was requested before the end, else ``done``."""
        is_left = self.finish_reason is None and (self.in_epoch or self.epoch_num < self.max_epoch)
        return "stopped" if self.stop_reason is not None and is_left else "done"

    def put(self, tag: str, value: Any) -> None:
        """Put one number on the curve ``tag``."""
        self.monitors.put_scalar(tag, value)

    def note_progress(self) -> None:
        """Say that slow work between steps goes on, so that the training is not taken for hung."""
        self.progressed_at = self.monitors.now()

    def pass_over_epoch(self) -> None:
        """Count all steps of the epoch that begins as done; for a callback that did their work in ``before_epoch``."""
        self.global_step += self.steps_per_epoch
        self.local_step = self.steps_per_epoch - 1

    def add(
        self, *, first: Sequence[Callback] = (), last: Sequence[Callback] = (), monitors: Sequence[Monitor] = ()
    ) -> None:
        """Add callbacks and monitors, before the set-up.

        Args:
            first: callbacks before all others.
            last: callbacks behind all others; monitors still come after them.
            monitors: behind the other monitors.
        """
        sinks = list(self.monitors)
        own = [each for each in self.callbacks if each not in sinks]
        self.monitors.add(*monitors)
        self.callbacks = [*first, *own, *last, *self.monitors]

    def setup(self) -> CallbackCalls:
        """Set up the callbacks and tell the program what will be fetched. ``train`` does it by itself."""
        if self._hooks is None:
            host = training_host()
            if host is not None:
                host.attach(self)
            self._hooks = CallbackCalls(self)
            self._hooks.call("setup_graph")
            self.step_values.declare()
            self.program.declare(declared_names(self.program, self.callbacks))
            self._hooks.find()  # values that the program keeps need no request
            self.feed = self.program.connect(self.batches)
        return self._hooks

    def state(self) -> RunState:
        """Return the run state; whole only at a boundary (``at_boundary``), or while no training is under way."""
        return run_state(self)

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
        load_run_state(self, state)
        self.feed = self.program.connect(self.batches)  # at the position of the state
        self._steps_before_load = self.timing.steps

    def train(self, max_epoch: int) -> None:
        """Train until ``max_epoch`` epochs are complete, a callback finishes it, or a stop is requested.

        Raises:
            Exception: whatever the program, the data or a callback raised, after ``after_train`` of every callback.
        """
        self.max_epoch = max_epoch
        failure: BaseException | None = None
        host = training_host()
        try:
            hooks = self.setup()
            if host is not None:
                host.begin(self)
            self._leave_if_stopped()
            hooks.call("before_train")
            self._leave_if_stopped()
            self._settle(hooks)
            while self.in_epoch or self.epoch_num < max_epoch:
                self._run_epoch(hooks)
        except LeaveLoop:
            pass
        except BaseException as error:
            failure = error
        failure = self._after_train(failure)
        if failure is not None:
            raise failure
        if host is not None:
            host.end(self)

    def _run_epoch(self, hooks: CallbackCalls) -> None:
        if not self.in_epoch:
            self.epoch_num += 1
            self.local_step = -1
            self.in_epoch = True
            hooks.call("before_epoch")
            if self.local_step >= 0:  # it was passed over; what depends on the number of the step follows
                hooks.call("trigger_step")
        try:
            self._run_steps(hooks)
        except BreakOff:
            self._leave_waiting(hooks)
        hooks.call("after_epoch")
        hooks.call("trigger_epoch")
        self.in_epoch = False
        self._settle(hooks)

    def _run_steps(self, hooks: CallbackCalls) -> None:
        assert self.feed is not None
        clock, step, next_batch, timing = time.perf_counter, self.program.step, self.feed.next, self.timing
        before_run = hooks.of["before_run"]
        hooks.wake_step = 0.0  # all are called after the first step
        for self.local_step in range(self.local_step + 1, self.steps_per_epoch):  # noqa: B020
            names = hooks.names_to_fetch() if before_run else ()
            began = clock()
            self.is_waiting = True
            self.batch = batch = next_batch()
            self.is_waiting = False
            loaded = clock()
            try:
                values = step(batch, names)
            except NonFiniteStep as found:  # the step was taken all the same
                timing.add_step(began, loaded, clock())
                self.global_step += 1
                hooks.call_each(self.step_values.watching(found.name), "after_run", found.name)
                raise
            self.global_step += 1
            ended = clock()
            if timing.add_step(began, loaded, ended) % FETCH_AFTER == 0:
                self.step_values.fetch()
            all_are_called = self.global_step >= hooks.wake_step or ended >= hooks.wake_s
            called = hooks.of if all_are_called else hooks.awake
            # Written out: between two steps the processor's caches are cold, and each call more costs microseconds.
            for callback, method in called["after_run"]:
                try:
                    method(values)
                except BaseException as error:
                    hooks.raised(error, callback, "after_run")
            for callback, method in called["trigger_step"]:
                try:
                    method()
                except BaseException as error:
                    hooks.raised(error, callback, "trigger_step")
            if all_are_called:
                hooks.find_awake(ended)
            if self._attention:
                self._settle(hooks)

    def _leave_waiting(self, hooks: CallbackCalls) -> None:
        """Return to the end of the last step, and leave from there."""
        taken = self.timing.steps - self._steps_before_load
        if not taken:
            raise LeaveLoop
        self.local_step -= 1
        assert self.feed is not None
        self.feed.go_back_to(taken)
        self._steps_before_load = self.timing.steps
        self._settle(hooks)

    def _after_train(self, failure: BaseException | None) -> BaseException | None:
        self.is_waiting = False
        failure = end_training(self.callbacks, failure)
        (self.feed or self.batches).close()
        return failure
