"""Periods: callbacks that act every k steps or epochs, and wrappers that give others a period."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ziggurat.engine.callback import Callback, ProxyCallback, innermost
from ziggurat.errors import ConfigurationError

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["CallbackFactory", "EnableCallbackIf", "Period", "PeriodicCallback", "PeriodicTrigger", "Recurring"]

_TOLERANCE = 1e-9
"""A multiple that binary fractions miss by a hair is reached all the same."""


class Period:
    """When it is time: every k steps, every k epochs, or both.

    Args:
        every_k_steps: k, counted by ``global_step``; None for never.
        every_k_epochs: k, counted by ``epoch_num``; None for never. It may be a fraction: 0.5 is twice in each epoch,
            after the step that completes the half and at the end.

    Raises:
        ConfigurationError: where a number of steps is below 1, or of epochs not above 0.
    """

    def __init__(self, every_k_steps: int | None, every_k_epochs: float | None) -> None:
        rules = (
            ("every_k_steps", every_k_steps, "at least 1", every_k_steps is None or every_k_steps >= 1),
            ("every_k_epochs", every_k_epochs, "above 0", every_k_epochs is None or every_k_epochs > 0),
        )
        for name, value, rule, fits in rules:
            if not fits:
                raise ConfigurationError(
                    f"`{name}` must be {rule}, or None for never.", received=value, advice="Set it so."
                )
        self.every_k_steps = every_k_steps
        self.every_k_epochs = every_k_epochs
        self._has_parts = every_k_epochs is not None and every_k_epochs != int(every_k_epochs)

    def is_step_due(self, trainer: Trainer) -> bool:
        """Return whether the newest step is one; not the last step of an epoch that is due itself: once is enough."""
        k, step = self.every_k_steps, trainer.global_step
        is_multiple = k is not None and step % k == 0
        if not is_multiple and not self._has_parts:
            return False
        if trainer.local_step + 1 == trainer.steps_per_epoch:
            return is_multiple and not self.is_epoch_due(trainer)
        return is_multiple or self._completes_a_part(step, trainer.steps_per_epoch)

    def is_epoch_due(self, trainer: Trainer) -> bool:
        """Return whether the newest epoch is one."""
        k = self.every_k_epochs
        if not self._has_parts:
            return k is not None and trainer.epoch_num % k == 0
        return self._completes_a_part(trainer.epoch_num * trainer.steps_per_epoch, trainer.steps_per_epoch)

    @property
    def counts_steps(self) -> bool:
        """Whether a step within an epoch can be due."""
        return bool(self.every_k_steps) or self._has_parts

    def _completes_a_part(self, step: int, steps_per_epoch: int) -> bool:
        """Return whether ``step`` is the first at or behind a multiple of a fraction of epochs."""
        k = self.every_k_epochs
        if k is None or not self._has_parts:
            return False
        size = k * steps_per_epoch
        return math.floor(step / size + _TOLERANCE) > math.floor((step - 1) / size + _TOLERANCE)

    def idle_hooks(self) -> frozenset[str]:
        """Return the hooks that the period has no use for."""
        steps = set() if self.counts_steps else {"trigger_step"}
        epochs = set() if self.every_k_epochs else {"trigger_epoch"}
        return frozenset(steps | epochs)


class Recurring(Callback):
    """Calls ``trigger()`` every k steps and every k epochs.

    Args:
        every_k_steps: also within an epoch; None for epochs only.
        every_k_epochs: at the end of every k-th epoch; None for steps only.
    """

    def __init__(self, *, every_k_steps: int | None = None, every_k_epochs: float | None = 1) -> None:
        self.period = Period(every_k_steps, every_k_epochs)

    def hooks(self) -> frozenset[str]:
        """Leave out the hooks that the period has no use for."""
        return super().hooks() - self.period.idle_hooks()

    def trigger_step(self) -> None:
        """Act where this step is due."""
        if self.period.is_step_due(self.trainer):
            self.trigger()

    def trigger_epoch(self) -> None:
        """Act where this epoch is due."""
        if self.period.is_epoch_due(self.trainer):
            self.trigger()


class PeriodicTrigger(ProxyCallback):
    """Triggers a callback every k steps or epochs; its other hooks are called as usual.

    A callback that overrides ``trigger_epoch`` and has no ``trigger`` is triggered by the former.

    Args:
        triggerable: the callback.
        every_k_steps: trigger it after these many steps, counted by ``global_step``.
        every_k_epochs: trigger it after these many epochs.
        before_train: also trigger it before the first step of the job (not again when the job is resumed).

    Raises:
        ConfigurationError: where none of the three is given.
    """

    def __init__(
        self,
        triggerable: Callback,
        every_k_steps: int | None = None,
        every_k_epochs: int | None = None,
        before_train: bool = False,
    ) -> None:
        super().__init__(triggerable)
        if every_k_steps is None and every_k_epochs is None and not before_train:
            raise _never("PeriodicTrigger")
        self._period = Period(every_k_steps, every_k_epochs)
        self._at_start = before_train
        self._inside = frozenset[str]()
        kind = type(innermost(triggerable))
        has_trigger = kind.trigger is not Callback.trigger or hasattr(kind, "_trigger")
        self._fire = triggerable.trigger if has_trigger else triggerable.trigger_epoch

    def hooks(self) -> frozenset[str]:
        """Return the hooks of the callback inside, and those of the period instead of its ``trigger_epoch``."""
        super().hooks()
        self._inside = self.callback.hooks()
        own = {"trigger_step", "trigger_epoch"} - self._period.idle_hooks()
        start = {"setup_graph", "before_train"} if self._at_start else {"setup_graph"}
        return (self._inside - {"trigger_epoch"}) | own | start

    def before_train(self) -> None:
        """Pass on, and trigger at the start of the job where that was asked for."""
        if "before_train" in self._inside:
            self.callback.before_train()
        if self._at_start and self.global_step == 0:
            self._fire()

    def trigger_step(self) -> None:
        """Pass on, and trigger where the step is due."""
        if "trigger_step" in self._inside:
            self.callback.trigger_step()
        if self._period.is_step_due(self.trainer):
            self._fire()

    def trigger_epoch(self) -> None:
        """Trigger where the epoch is due."""
        if self._period.is_epoch_due(self.trainer):
            self._fire()


class EnableCallbackIf(ProxyCallback):
    """Lets a callback take part in steps and epochs only while ``pred(self)`` is true.

    ``setup_graph``, ``before_train``, ``before_stop`` and ``after_train`` are always called. For a step, the predicate
    is asked once before it (when ``global_step`` does not count it yet) and once after it.

    Args:
        callback: the callback.
        pred: takes this wrapper, whose ``trainer``, ``epoch_num`` and ``global_step`` tell where training stands.
    """

    def __init__(self, callback: Callback, pred: Callable[[Any], bool]) -> None:
        super().__init__(callback)
        self._pred = pred
        self._takes_part = False

    def hooks(self) -> frozenset[str]:
        """Return the hooks of the callback inside."""
        super().hooks()
        inside = self.callback.hooks() | {"setup_graph"}
        return inside | {"before_run"} if "after_run" in inside else inside

    def is_enabled(self) -> bool:
        """Return what the predicate says now."""
        return bool(self._pred(self))

    def is_run_enabled(self) -> bool:
        """Return what the predicate says of the step to come."""
        return self.is_enabled()

    def before_epoch(self) -> None:
        """Pass on while enabled."""
        if self.is_enabled():
            self.callback.before_epoch()

    def before_run(self) -> Sequence[str]:
        """Pass on while enabled; ``after_run`` of the same step follows suit."""
        self._takes_part = self.is_run_enabled()
        return self.callback.before_run() if self._takes_part else ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Pass on where ``before_run`` was."""
        if self._takes_part:
            self.callback.after_run(values)

    def trigger_step(self) -> None:
        """Pass on while enabled."""
        if self.is_enabled():
            self.callback.trigger_step()

    def after_epoch(self) -> None:
        """Pass on while enabled."""
        if self.is_enabled():
            self.callback.after_epoch()

    def trigger_epoch(self) -> None:
        """Pass on while enabled."""
        if self.is_enabled():
            self.callback.trigger_epoch()

    def trigger(self) -> None:
        """Pass on while enabled."""
        if self.is_enabled():
            self.callback.trigger()


class PeriodicCallback(EnableCallbackIf):
    """Lets a callback take part in every k-th step, or in every k-th epoch.

    It makes a callback rarer, never more often. With epochs, the last epoch of the training counts as one, so that its
    end is never missed.

    Args:
        callback: the callback.
        every_k_steps: take part in the steps whose ``global_step`` this divides.
        every_k_epochs: take part in the epochs whose number this divides.

    Raises:
        ConfigurationError: where neither is given.
    """

    def __init__(self, callback: Callback, every_k_steps: int | None = None, every_k_epochs: int | None = None) -> None:
        if every_k_steps is None and every_k_epochs is None:
            raise _never("PeriodicCallback")
        super().__init__(callback, lambda self: self._is_due(self.global_step))
        self._period = Period(every_k_steps, every_k_epochs)

    def is_run_enabled(self) -> bool:
        """Return whether the step to come is one."""
        return self._is_due(self.global_step + 1)

    def _is_due(self, step: int) -> bool:
        steps, epochs = self._period.every_k_steps, self._period.every_k_epochs
        if steps is not None and step % steps == 0:
            return True
        return epochs is not None and (self.epoch_num % epochs == 0 or self.epoch_num == self.trainer.max_epoch)


class CallbackFactory(Callback):
    """A callback made of functions, each of which takes the callback.

    >>> say = CallbackFactory(trigger=lambda self: print(self.epoch_num))

    Args:
        setup_graph: called as the hook of that name.
        before_train: called as the hook of that name.
        trigger: called as the hook of that name: after each epoch, unless a wrapper says otherwise.
        after_train: called as the hook of that name.
    """

    def __init__(
        self,
        setup_graph: Callable[[Any], object] | None = None,
        before_train: Callable[[Any], object] | None = None,
        trigger: Callable[[Any], object] | None = None,
        after_train: Callable[[Any], object] | None = None,
    ) -> None:
        self._functions = {
            "setup_graph": setup_graph,
            "before_train": before_train,
            "trigger": trigger,
            "after_train": after_train,
        }

    def hooks(self) -> frozenset[str]:
        """Return the hooks that have a function."""
        given = {name for name, function in self._functions.items() if function is not None}
        return frozenset("trigger_epoch" if name == "trigger" else name for name in given)

    def setup_graph(self) -> None:
        """Call the function."""
        self._do("setup_graph")

    def before_train(self) -> None:
        """Call the function."""
        self._do("before_train")

    def trigger(self) -> None:
        """Call the function."""
        self._do("trigger")

    def after_train(self) -> None:
        """Call the function."""
        self._do("after_train")

    def _do(self, name: str) -> None:
        function = self._functions[name]
        if function is not None:
            function(self)


def _never(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} must be told when.", advice="Give `every_k_steps`, `every_k_epochs`, or both (at least 1)."
    )
