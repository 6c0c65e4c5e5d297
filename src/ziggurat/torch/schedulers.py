"""Learning-rate schedulers of PyTorch as a callback."""

from __future__ import annotations

from typing import Any, Literal

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import ScalarWatch
from ziggurat.errors import ConfigurationError

__all__ = ["TorchScheduler"]


class TorchScheduler(Callback):
    """Steps a scheduler of ``torch.optim.lr_scheduler``; a resumed training goes on with its state.

    Args:
        scheduler: made with the optimizer of the program.
        every: ``epoch`` or ``step``.
        metric: tag that the scheduler judges, for ``ReduceLROnPlateau``; put the callback behind what puts the tag.

    Raises:
        ConfigurationError: for another ``every``.
    """

    def __init__(self, scheduler: Any, every: Literal["epoch", "step"] = "epoch", *, metric: str | None = None) -> None:
        if every not in ("epoch", "step"):
            raise ConfigurationError(f"`every` is {every!r}, not `epoch` or `step`.", advice="Choose one of them.")
        self.scheduler = scheduler
        self._every = every
        self._watch = None if metric is None else ScalarWatch(metric)

    def hooks(self) -> frozenset[str]:
        """Return the one hook that steps it."""
        return frozenset({"trigger_epoch" if self._every == "epoch" else "trigger_step"})

    def trigger_epoch(self) -> None:
        """Step at the end of an epoch."""
        self.trigger()

    def trigger_step(self) -> None:
        """Step behind a step."""
        self.trigger()

    def trigger(self) -> None:
        """Step the scheduler; with a metric, only where it was put at this very step."""
        if self._watch is None:
            self.scheduler.step()
            return
        point = self._watch.newest(self.trainer)
        if point is not None and point[0] == self.global_step:
            self.scheduler.step(point[1])

    def state(self) -> Any:
        """Return the numbers of the scheduler; what its constructor was given comes from there again."""
        return _plain(self.scheduler.state_dict())

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self.scheduler.load_state_dict(_merged(self.scheduler.state_dict(), state))
        optimizer = getattr(self.scheduler, "optimizer", None)
        if optimizer is not None:
            optimizer._opt_called = True  # in the attempt before: PyTorch would warn of a step that was left out


def _plain(value: Any) -> Any:
    """Return the part of a state that JSON holds: numbers, text, lists of them, and mappings with names."""
    if isinstance(value, dict):
        return {
            name: _plain(each)
            for name, each in value.items()
            if isinstance(name, str) and (_is_plain(each) or isinstance(each, dict))
        }
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(each) or isinstance(each, dict) for each in value)
    return value is None or isinstance(value, bool | int | float | str)


def _merged(own: Any, saved: Any) -> Any:
    """Return a state with the saved values in the place of its own."""
    if isinstance(own, dict) and isinstance(saved, dict):
        return {**own, **{name: _merged(own.get(name), each) for name, each in saved.items()}}
    if isinstance(own, list | tuple) and isinstance(saved, list) and len(own) == len(saved):
        return type(own)(_merged(one, each) for one, each in zip(own, saved, strict=True))
    return saved
