"""Best-checkpoint callbacks: a checkpoint gets a name when a metric reaches a new best value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.engine.callbacks.observing import ScalarWatch, better
from ziggurat.engine.callbacks.recurring import Period
from ziggurat.engine.callbacks.saving import Saver
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.entities.best_checkpoint import primary_metric
from ziggurat.errors import ConfigurationError
from ziggurat.layout import checkpoint_name

__all__ = ["PRIMARY_METRIC", "KeepBest", "MaxSaver", "MinSaver"]

PRIMARY_METRIC: Final = "auto"
"""In the place of a scalar: the validation accuracy, else the validation loss, of what the run puts."""


class KeepBest(Saver):
    """Keeps the n checkpoints with the best values of a scalar.

    The best is named ``min-<tag>`` (``max-<tag>``), the others ``min-<tag>-2``, ``-3``, …; ``ModelSaver`` does not
    remove a named one. A value counts only where it was put at the very step that is saved, is a finite number, and is
    strictly better than one that is kept. Its place in the list does not matter. The ranks survive a resume.

    With the tag ``auto`` it is the primary metric of the run that decides: the validation accuracy, else the validation
    error, else the validation loss. The best is named ``best`` then; without a validation, nothing is kept.

    It judges at the end of each epoch. Where the scalar is also put within epochs, the periods say when, so that a
    checkpoint is written whenever the scalar gets better.

    Args:
        tag: the scalar, or ``auto``.
        n: how many to keep.
        mode: whether the smallest (``min``) or the largest (``max``) is best; unused with ``auto``.
        filename: another name for the best.
        store: the store or its folder; where it is left out, that of the list's ``ModelSaver``.
        every_k_epochs: also judge within an epoch, for a fraction of epochs; None for not.
        every_k_steps: also judge after every k-th step; None for not.
    """

    def __init__(
        self,
        tag: str,
        n: int = 1,
        mode: Literal["min", "max"] = "min",
        *,
        filename: str | None = None,
        store: CheckpointStore | Path | str | None = None,
        every_k_epochs: float | None = None,
        every_k_steps: int | None = None,
    ) -> None:
        super().__init__(store)
        if n < 1:
            raise ConfigurationError("`n` must be at least 1.", received=n, advice="Set how many checkpoints to keep.")
        self._is_primary = tag == PRIMARY_METRIC
        self._watch = ScalarWatch(tag)
        self._better = better(mode)
        self._count = n
        self._given_name = filename or ("best" if self._is_primary else f"{mode}-{tag}")
        self._period = Period(every_k_steps, every_k_epochs)
        self._ranks: list[tuple[float, str]] = []

    def hooks(self) -> frozenset[str]:
        """Steps are of interest only where the periods say so."""
        return super().hooks() - (set() if self._period.counts_steps else {"trigger_step"})

    def before_train(self) -> None:
        """Give the names again: a kill may have come between a save and its name."""
        present = {info.name for info in self.desk.store.list()}
        self._ranks = [rank for rank in self._ranks if rank[1] in present]
        self._give_names()

    def trigger_step(self) -> None:
        """Judge where the step is due."""
        if self._period.is_step_due(self.trainer):
            self.trigger()

    def trigger(self) -> None:
        """Judge once all callbacks have put their numbers."""
        self.trainer.at_boundary(self._judge)

    def state(self) -> Any:
        """Return values and checkpoints, best first; with ``auto``, also the metric that they are of."""
        ranks = [list(rank) for rank in self._ranks]
        return {"tag": self._watch.tag, "ranks": ranks} if self._is_primary else ranks

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        if self._is_primary:
            self._watch = ScalarWatch(state["tag"])
            state = state["ranks"]
        self._ranks = [(float(value), str(name)) for value, name in state]

    def _judge(self) -> None:
        if self._is_primary and not self._find_metric():
            return
        point = self._watch.newest(self.trainer)
        if point is None or point[0] != self.global_step or not math.isfinite(point[1]):
            return
        value, checkpoint = point[1], checkpoint_name(self.global_step)
        others = [rank for rank in self._ranks if rank[1] != checkpoint]
        place = next((place for place, (held, _) in enumerate(others) if self._better(value, held)), len(others))
        if place < self._count:
            self._ranks = [*others[:place], (value, checkpoint), *others[place:]][: self._count]
            self.desk.ask(self._given_name, self._after_save)

    def _find_metric(self) -> bool:
        """Look at the primary metric; return whether the run has one. Values of another one are not compared."""
        found = primary_metric(self.trainer.monitors.latest())
        if found is None:
            return False
        tag, mode = found
        self._better = better(mode)
        if tag != self._watch.tag:
            self._watch, self._ranks = ScalarWatch(tag), []
        return True

    def _after_save(self, info: CheckpointInfo) -> None:
        self._give_names()

    def _give_names(self) -> None:
        store = self.desk.store
        names = store.names()
        for place, (_, checkpoint) in enumerate(self._ranks, start=1):
            given = self._given_name if place == 1 else f"{self._given_name}-{place}"
            if names.get(given) != checkpoint:
                store.give_name(given, checkpoint)


class MinSaver(KeepBest):
    """Keeps the checkpoint with the smallest value of a scalar, named ``min-<monitor_stat>``.

    Args:
        monitor_stat: the scalar.
        reverse: keep the largest instead, named ``max-<monitor_stat>``.
        filename: another name.
        store: the store or its folder; where it is left out, that of the list's ``ModelSaver``.
    """

    def __init__(
        self,
        monitor_stat: str,
        reverse: bool = False,
        filename: str | None = None,
        store: CheckpointStore | Path | str | None = None,
    ) -> None:
        super().__init__(monitor_stat, 1, "max" if reverse else "min", filename=filename, store=store)


class MaxSaver(MinSaver):
    """Keeps the checkpoint with the largest value of a scalar, named ``max-<monitor_stat>``.

    Args:
        monitor_stat: the scalar.
        filename: another name.
        store: the store or its folder; where it is left out, that of the list's ``ModelSaver``.
    """

    def __init__(
        self, monitor_stat: str, filename: str | None = None, store: CheckpointStore | Path | str | None = None
    ) -> None:
        super().__init__(monitor_stat, reverse=True, filename=filename, store=store)
