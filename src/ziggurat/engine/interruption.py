"""End of a training: requests to stop or finish it, and the work that waits for a boundary between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ziggurat.engine.callback_calls import CallbackCalls

__all__ = ["BreakOff", "Interruptible", "LeaveLoop", "StopTraining"]


class StopTraining(Exception):  # noqa: N818 - Tensorpack's name, and no error
    """Raised by a callback that finds the training complete before its last epoch; the other hooks still run."""


class LeaveLoop(Exception):  # noqa: N818 - no error
    """Leaves the loop after everything was saved."""


class BreakOff(BaseException):
    """Leaves a wait for a batch; no data flow takes it for an error of its own."""


class Interruptible:
    """Base of the trainer: what others ask of it while it trains."""

    def __init__(self) -> None:
        self.stop_reason: str | None = None
        self.finish_reason: str | None = None
        self.is_waiting = False
        """Whether the step under way has no batch yet."""
        self._attention = False
        self._actions: list[Callable[[], None]] = []

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
            raise BreakOff

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

    def _leave_if_stopped(self) -> None:
        """Leave before the first step: nothing was done in this attempt but what the next one begins with, too."""
        if self.stop_reason is not None and self.finish_reason is None:
            raise LeaveLoop

    def _settle(self, hooks: CallbackCalls) -> None:
        """Do what waited for a boundary; leave the loop where that was asked for, after ``before_stop``."""
        self._attention = False
        self._do_actions()
        if self.stop_reason is not None or self.finish_reason is not None:
            hooks.call("before_stop")
            self._do_actions()
            raise LeaveLoop

    def _do_actions(self) -> None:
        while self._actions:
            try:
                self._actions.pop(0)()
            except StopTraining as error:
                self.finish(str(error) or "a callback found the training complete")
