"""Callback base classes: everything in training except the step itself.

Hooks, in call order (``docs/how-to/write-a-callback.md`` has an example of each)::

    setup_graph                    once, before anything is restored; then declares()
    before_train                   once per attempt, after the state is restored
      before_epoch                 once per epoch, not again when the epoch is resumed in the middle
        before_run, after_run      around each step: names to fetch, and their values
        trigger_step               after each step
      after_epoch                  directly after the last step of an epoch: only very fast work
      trigger_epoch                then the slow work; calls trigger() unless overridden
    before_stop                    when a stop was requested: the state is complete
    after_train                    always, in every outcome, exactly once

A subclass overrides the hooks it needs, under these names or with a leading underscore as in Tensorpack. Only
overridden hooks have a cost. Hooks run in list order; monitors come last.

Without a path of its own, a callback that keeps files writes to the folder of the job: ``bind_folder`` says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ziggurat.errors import UsageError
from ziggurat.layout import JobFolder

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["AWAKE", "HOOKS", "Callback", "NeedsFolder", "ProxyCallback", "bind_folder", "innermost", "missing_folder"]

HOOKS: Final = (
    "setup_graph",
    "before_train",
    "before_epoch",
    "before_run",
    "after_run",
    "trigger_step",
    "after_epoch",
    "trigger_epoch",
    "before_stop",
    "after_train",
)
"""Every hook that the trainer calls, in the order of the first call."""

AWAKE: Final = (0.0, 0.0)
"""Value of ``Callback.rests_until`` where every step is of interest."""


class Callback:
    """Base of all callbacks: every hook does nothing."""

    name: str = ""
    """Name under which the state is saved; the trainer fills in the class name (and a number) where it is empty."""

    chief_only: ClassVar[bool] = True
    """Whether it runs on the first process of a distributed job only."""

    trainer: Trainer
    """The trainer it serves; there from ``setup_graph`` on."""

    rests_until: tuple[float, float] = AWAKE
    """``after_run`` and ``trigger_step`` need no call while ``global_step`` is below the first number and
    ``time.perf_counter()`` below the second. A callback sets it in any of its hooks; by default it does not rest. They
    are called all the same after the first step of an epoch, whenever another callback stops resting, and inside a
    wrapper."""

    # ---- hooks

    def setup_graph(self) -> None:
        """Prepare what must exist before the state is restored. Reads ``self.trainer``."""
        self._legacy("_setup_graph")

    def before_train(self) -> None:
        """Prepare what an attempt needs: files, threads. The state has been restored."""
        self._legacy("_before_train")

    def before_epoch(self) -> None:
        """Begin an epoch. Must be fast."""
        self._legacy("_before_epoch")

    def before_run(self) -> Sequence[str]:
        """Return the declared names to fetch with the next step."""
        return self._legacy("_before_run") or ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Take the values of the step: those that this and other callbacks asked for."""
        self._legacy("_after_run", values)

    def trigger_step(self) -> None:
        """Act after a step."""
        self._legacy("_trigger_step")

    def after_epoch(self) -> None:
        """End an epoch. Must be fast: slow work belongs in ``trigger_epoch``."""
        self._legacy("_after_epoch")

    def trigger_epoch(self) -> None:
        """Act after an epoch; calls ``trigger()`` unless overridden."""
        if hasattr(self, "_trigger_epoch"):
            self._legacy("_trigger_epoch")
        else:
            self.trigger()

    def trigger(self) -> None:
        """Do the callback's work, whenever that is: wrappers such as ``PeriodicTrigger`` decide."""
        self._legacy("_trigger")

    def before_stop(self) -> None:
        """Save what must not be lost: training stops before its end, and the state is whole."""
        self._legacy("_before_stop")

    def after_train(self) -> None:
        """Free what was taken. Called exactly once, also after an error in any hook or in the set-up."""
        self._legacy("_after_train")

    # ---- declarations and state

    def declares(self) -> Sequence[str]:
        """Return every name that ``before_run`` may ever ask for."""
        return ()

    def state(self) -> Any:
        """Return what must outlive the process, as JSON values; None where there is nothing."""
        return None

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave; called after ``setup_graph`` and before ``before_train``."""

    def hooks(self) -> frozenset[str]:
        """Return the names of the hooks that the trainer has to call."""
        cls = type(self)
        active = {
            hook for hook in HOOKS if getattr(cls, hook) is not getattr(Callback, hook) or hasattr(cls, f"_{hook}")
        }
        if cls.trigger is not Callback.trigger or hasattr(cls, "_trigger"):
            active.add("trigger_epoch")
        return frozenset(active)

    # ---- where training stands

    @property
    def epoch_num(self) -> int:
        """The epoch it is in, from 1."""
        return self.trainer.epoch_num

    @property
    def global_step(self) -> int:
        """Steps done since the job began."""
        return self.trainer.global_step

    @property
    def local_step(self) -> int:
        """Number of the newest step in its epoch, from 0."""
        return self.trainer.local_step

    def _legacy(self, name: str, *arguments: Any) -> Any:
        method = getattr(self, name, None)
        return None if method is None else method(*arguments)


class ProxyCallback(Callback):
    """A callback that passes every hook on to another one; base of wrappers that decide *when*.

    Args:
        callback: the callback inside.
    """

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.name = callback.name or type(callback).__name__
        self.chief_only = callback.chief_only  # pyright: ignore[reportAttributeAccessIssue]

    def hooks(self) -> frozenset[str]:
        """Return the hooks of the callback inside, and those that the wrapper overrides."""
        if hasattr(self, "trainer"):
            self.callback.trainer = self.trainer  # which hooks it needs may depend on the program
        own = {hook for hook in HOOKS if getattr(type(self), hook) is not getattr(ProxyCallback, hook)}
        return self.callback.hooks() | own | {"setup_graph"}

    def setup_graph(self) -> None:
        """Give the trainer to the callback inside and set it up."""
        self.callback.trainer = self.trainer
        self.callback.setup_graph()

    def before_train(self) -> None:
        """Pass on."""
        self.callback.before_train()

    def before_epoch(self) -> None:
        """Pass on."""
        self.callback.before_epoch()

    def before_run(self) -> Sequence[str]:
        """Pass on."""
        return self.callback.before_run()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Pass on."""
        self.callback.after_run(values)

    def trigger_step(self) -> None:
        """Pass on."""
        self.callback.trigger_step()

    def after_epoch(self) -> None:
        """Pass on."""
        self.callback.after_epoch()

    def trigger_epoch(self) -> None:
        """Pass on."""
        self.callback.trigger_epoch()

    def trigger(self) -> None:
        """Pass on."""
        self.callback.trigger()

    def before_stop(self) -> None:
        """Pass on."""
        self.callback.before_stop()

    def after_train(self) -> None:
        """Pass on."""
        self.callback.after_train()

    def declares(self) -> Sequence[str]:
        """Pass on."""
        return self.callback.declares()

    def state(self) -> Any:
        """Pass on."""
        return self.callback.state()

    def load_state(self, state: Any) -> None:
        """Pass on."""
        self.callback.load_state(state)


class NeedsFolder:
    """A callback or monitor that keeps files, and may be made without saying where: ``ModelSaver()``."""

    def use_folder(self, folder: JobFolder) -> None:
        """Keep the files in the folder of this job, unless a place was given before."""
        raise NotImplementedError


def bind_folder(callbacks: Iterable[Callback], folder: JobFolder | Path) -> None:
    """Give every callback and monitor without a place of its own the folder of the job.

    Call it before the trainer is set up; ``default_monitors(folder)`` needs no call.

    Args:
        callbacks: callbacks, monitors, and wrappers around them.
        folder: the folder of the job.
    """
    job_folder = folder if isinstance(folder, JobFolder) else JobFolder(Path(folder))
    for callback in callbacks:
        inside: Any = innermost(callback)
        if isinstance(inside, NeedsFolder):
            inside.use_folder(job_folder)


def innermost(callback: Callback) -> Callback:
    """Return the callback inside all wrappers."""
    *_, last = _unwrapped(callback)
    return last


def missing_folder(owner: object) -> UsageError:
    """Return the error of a callback that was not told where to write."""
    name = type(owner).__name__
    return UsageError(
        f"{name} needs a folder to write to.",
        advice="Give it one, or all callbacks that of the training: by `logger.set_logger_dir(folder)` in a program of "
        f"`ziggurat.tf`, else by `bind_folder(callbacks, folder)`. In a job of the studio {name} has one.",
    )


def _unwrapped(callback: Callback) -> Iterator[Callback]:
    yield callback
    while isinstance(callback, ProxyCallback):
        callback = callback.callback
        yield callback
