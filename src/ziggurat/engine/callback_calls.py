"""Calls of the hooks of a trainer's callbacks, and the notes on what they raise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ziggurat.engine.callback import HOOKS, Callback
from ziggurat.engine.interruption import StopTraining
from ziggurat.engine.program import Program
from ziggurat.errors import UnknownNameError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["CallbackCalls", "declared_names", "end_training"]


class CallbackCalls:
    """The hooks that the callbacks of a trainer have.

    Args:
        trainer: whose callbacks; each gets a name of its own and the trainer.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        _give_names(trainer.callbacks)
        for callback in trainer.callbacks:
            callback.trainer = trainer
        self.of: dict[str, list[tuple[Callback, Callable[..., Any]]]] = {}
        """Hook → callbacks that have it, with the method to call."""
        self.awake: dict[str, list[tuple[Callback, Callable[..., Any]]]] = {}
        """Those of ``of`` that do not rest, for the two hooks that come after a step."""
        self.wake_step = self.wake_s = 0.0
        """From this global step or this second of ``time.perf_counter()`` on, one that rests is to be called."""
        self.find()

    def find(self) -> None:
        """Ask every callback which hooks it has: before the set-up, and again when it is known what a step keeps."""
        found = [(callback, callback.hooks()) for callback in self._trainer.callbacks]
        self.of = {
            hook: [(callback, getattr(callback, hook)) for callback, hooks in found if hook in hooks] for hook in HOOKS
        }

    def find_awake(self, now_s: float) -> None:
        """Note which callbacks rest, and until when; asked again after each step in which all were called.

        Args:
            now_s: of ``time.perf_counter()``.
        """
        step = self._trainer.global_step
        rests = {
            id(callback): callback.rests_until
            for callback in self._trainer.callbacks
            if callback.rests_until[0] > step and callback.rests_until[1] > now_s
        }
        self.awake = {
            hook: [entry for entry in self.of[hook] if id(entry[0]) not in rests]
            for hook in ("after_run", "trigger_step")
        }
        self.wake_step = min((each[0] for each in rests.values()), default=math.inf)
        self.wake_s = min((each[1] for each in rests.values()), default=math.inf)

    def call(self, hook: str, *arguments: Any) -> None:
        """Call one hook of every callback, in their order."""
        methods = self.of[hook]
        if methods:
            self.call_each(methods, hook, *arguments)

    def call_each(self, methods: Sequence[tuple[Callback, Callable[..., Any]]], hook: str, *arguments: Any) -> None:
        """Call methods of callbacks as part of a hook: what they raise ends the training, and names the hook."""
        for callback, method in methods:
            try:
                method(*arguments)
            except BaseException as error:
                self.raised(error, callback, hook)

    def names_to_fetch(self) -> Sequence[str]:
        """Call ``before_run``; return every name that a callback wants of the step to come."""
        names: Sequence[str] = ()
        for callback, method in self.of["before_run"]:
            try:
                wanted = method()
            except BaseException as error:
                self.raised(error, callback, "before_run")
                continue
            if wanted and wanted is not names:
                names = tuple(dict.fromkeys((*names, *wanted))) if names else wanted
        return names

    def raised(self, error: BaseException, callback: Callback, hook: str) -> None:
        """Finish the training where a hook raised ``StopTraining``; raise anything else, with a note that names it."""
        trainer = self._trainer
        name = callback.name or type(callback).__name__  # one inside a wrapper has none
        if isinstance(error, StopTraining):
            trainer.finish(str(error) or f"{name} found the training complete")
            return
        error.add_note(f"Raised by {hook} of callback {name}, epoch {trainer.epoch_num}, step {trainer.global_step}.")
        raise error


def declared_names(program: Program, callbacks: Sequence[Callback]) -> list[str]:
    """Return the names of all values that callbacks will ever ask for.

    Raises:
        UnknownNameError: where the program has no such value.
    """
    known = program.names()  # of a large graph a view: only an error lists it
    declared = list(dict.fromkeys(name for callback in callbacks for name in callback.declares()))
    for name in declared:
        if name not in known:
            raise UnknownNameError("value of this program", name, known)
    return declared


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


def end_training(callbacks: Iterable[Callback], failure: BaseException | None) -> BaseException | None:
    """Call ``after_train`` of every callback, whatever they raise; return the first error.

    Args:
        callbacks: in their order.
        failure: error that ended the training; None if there was none.
    """
    for callback in callbacks:
        try:
            callback.after_train()
        except BaseException as error:
            if failure is None:
                error.add_note(f"Raised by after_train of callback {callback.name}.")
                failure = error
            else:
                failure.add_note(f"Then after_train of callback {callback.name} raised {error!r}.")
    return failure
