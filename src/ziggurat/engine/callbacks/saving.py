"""Savers: regular checkpoints, the best ones by a metric, and one save per boundary for all of them.

A saver never saves in its own hook, because other callbacks may still have work to do. At the boundary, each saver
first *judges* (is this value the best?) and requests a save; the save runs after all have judged. So the position of
a saver in the list does not matter, and the saved state of every saver includes that save.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ziggurat.engine.callback import Callback, NeedsFolder, innermost, missing_folder
from ziggurat.engine.callbacks.periods import Period
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.engine.monitor import ScalarWatch, better
from ziggurat.entities.best_checkpoint import PRIMARY_METRIC, primary_metric
from ziggurat.errors import ConfigurationError
from ziggurat.events import CheckpointRemoved, CheckpointSaved
from ziggurat.layout import JobFolder, checkpoint_name

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["KeepBest", "MaxSaver", "MinSaver", "ModelSaver", "has_model_saver", "newest_checkpoint"]


class CheckpointCoordinator:
    """Saves the state of one trainer into one store on request.

    Args:
        trainer: whose state.
        store: where to.
    """

    def __init__(self, trainer: Trainer, store: CheckpointStore) -> None:
        self.store = store
        self.newest: CheckpointInfo | None = None
        """The checkpoint that was saved last in this attempt."""
        self._trainer = trainer
        self._asked: list[tuple[str, Callable[[CheckpointInfo], None]]] = []
        self._is_outdated = True

    def ask(self, reason: str, then: Callable[[CheckpointInfo], None]) -> None:
        """Save once everybody at this boundary has judged, and call ``then`` with the checkpoint.

        Args:
            reason: why, for the event: ``epoch``, ``stop``, ``min-validation_error``.
            then: called after the save, in the order of asking.
        """
        if not self._asked:
            self._trainer.at_boundary(self._serve)
        self._asked.append((reason, then))

    def outdate(self) -> None:
        """Take note that the state has changed although no step was done: an epoch has come to its end."""
        self._is_outdated = True

    def _serve(self) -> None:
        asked, self._asked = self._asked, []
        info = self.newest
        if info is None or self._is_outdated or info.step != self._trainer.global_step:
            info = self._save([reason for reason, _ in asked])
        for _, then in asked:
            then(info)

    def _save(self, reasons: list[str]) -> CheckpointInfo:
        trainer = self._trainer
        # First the numbers, then the checkpoint: after a kill in between, the numbers are said again. The other way
        # round those since the last flush would be lost for ever.
        trainer.monitors.flush()
        self.newest = info = self.store.save(trainer.state())
        self._is_outdated = False
        trainer.monitors.put_event(
            CheckpointSaved(
                time=trainer.monitors.now(),
                name=info.name,
                step=info.step,
                epoch=trainer.epoch_num,
                reason=", ".join(dict.fromkeys(reasons)),
                size_bytes=info.size_bytes,
                scalars=dict(trainer.monitors.latest()),
            )
        )
        return info


class Saver(Callback, NeedsFolder):
    """Base of callbacks that save: it finds the desk that all savers of one store share.

    Args:
        store: the store or its folder; None for the one that another saver of the list has, or ``bind_folder`` gives.
    """

    desk: CheckpointCoordinator
    """Where to ask for a save; there from ``setup_graph`` on."""

    def __init__(self, store: CheckpointStore | Path | str | None = None) -> None:
        self._store = store if store is None or isinstance(store, CheckpointStore) else CheckpointStore(Path(store))

    def use_folder(self, folder: JobFolder) -> None:
        """Save into this job, unless another place was given."""
        if self._store is None:
            self._store = CheckpointStore(folder.checkpoints)

    def setup_graph(self) -> None:
        """Find the desk, or open it."""
        others = [other for other in _savers(self.trainer) if other is not self]
        store = self._store or next((other._store for other in others if other._store is not None), None)
        if store is None:
            raise missing_folder(self)
        desks = (other.desk for other in others if hasattr(other, "desk"))
        shared = next((desk for desk in desks if desk.store.folder.absolute() == store.folder.absolute()), None)
        self.desk = shared or CheckpointCoordinator(self.trainer, store)

    def trigger_epoch(self) -> None:
        """Act at the end of an epoch: what was saved within it is no longer the newest state."""
        self.desk.outdate()
        self.trigger()


def newest_checkpoint(trainer: Trainer) -> str:
    """Return the name of the last good checkpoint that the savers of a trainer know of; empty where there is none."""
    for saver in _savers(trainer):
        desk = getattr(saver, "desk", None)
        if desk is not None:
            stored = [desk.newest] if desk.newest is not None else desk.store.list()
            if stored:
                return stored[-1].name
    return ""


def has_model_saver(trainer: Trainer, folder: Path) -> bool:
    """Return whether a ``ModelSaver`` of a trainer saves into the folder of checkpoints ``folder``."""
    stores = [each._store for each in _savers(trainer) if isinstance(each, ModelSaver)]
    return any(store is not None and store.folder.absolute() == folder.absolute() for store in stores)


def _savers(trainer: Trainer) -> list[Saver]:
    inside = (innermost(callback) for callback in trainer.callbacks)
    return [callback for callback in inside if isinstance(callback, Saver)]


class ModelSaver(Saver):
    """Saves the whole run state: weights, optimizer, callbacks, random generators, data position.

    It saves by the periods below, after the last epoch, and when training is stopped. The newest ``max_to_keep``
    checkpoints stay; of the older ones, those with a name (``min-validation_error``) and one for each
    ``keep_checkpoint_every_n_hours``. Every save and removal is an event.

    Args:
        store: the store or its folder; where it is left out, ``bind_folder`` gives the job's ``checkpoints/``.
        max_to_keep: how many of the newest stay; None or 0 for all.
        keep_checkpoint_every_n_hours: also keep one for each time of this length; None for none.
        every_k_epochs: save after every k-th epoch; None for not.
        every_k_steps: save after every k-th step; None for not.
        every_minutes: save when this much time has passed since the last save, by the trainer's clock; None for not.
        save_on_stop: save when the training is stopped.

    Raises:
        StorageError: from the training, where the disk is full; the last checkpoint is whole.
    """

    def __init__(
        self,
        store: CheckpointStore | Path | str | None = None,
        max_to_keep: int | None = 10,
        keep_checkpoint_every_n_hours: float | None = 0.5,
        *,
        every_k_epochs: float | None = 1,
        every_k_steps: int | None = None,
        every_minutes: float | None = None,
        save_on_stop: bool = True,
    ) -> None:
        super().__init__(store)
        self._max_to_keep = _checked("max_to_keep", max_to_keep)
        self._keep_every_s = 3600 * (_checked("keep_checkpoint_every_n_hours", keep_checkpoint_every_n_hours) or 0)
        self._period = Period(every_k_steps, every_k_epochs)
        self._every_s = 60 * (_checked("every_minutes", every_minutes) or 0)
        self._save_on_stop = save_on_stop
        self._next_s = 0.0
        self._saved_at_s: dict[str, float] = {}
        self._kept: list[str] = []
        self._keep_from_s: float | None = None

    def hooks(self) -> frozenset[str]:
        """Steps are of interest only where the periods say so."""
        idle = set() if self._period.counts_steps or self._every_s else {"trigger_step"}
        return super().hooks() - idle

    def before_train(self) -> None:
        """Start the clocks; they count the time of training, not the time between attempts."""
        now = self.trainer.monitors.now()
        self._next_s = now + self._every_s
        if self._keep_from_s is None:
            self._keep_from_s = now + self._keep_every_s

    def trigger_step(self) -> None:
        """Ask for a save where the step or the time is due."""
        if self._every_s and self.trainer.monitors.now() >= self._next_s:
            self._ask("time")
        elif self._period.is_step_due(self.trainer):
            self._ask("step")

    def trigger_epoch(self) -> None:
        """Ask for a save where the epoch is due, or the last one."""
        self.desk.outdate()
        if self._period.is_epoch_due(self.trainer):
            self._ask("epoch")
        elif self.epoch_num >= self.trainer.max_epoch:
            self._ask("end")

    def trigger(self) -> None:
        """Ask for a save, whenever a wrapper says so."""
        self._ask("trigger")

    def before_stop(self) -> None:
        """Ask for a save before training stops."""
        if self._save_on_stop:
            self._ask("stop")

    def state(self) -> Any:
        """Return when checkpoints were saved, and which are kept for their age."""
        return {"saved_at": self._saved_at_s, "kept": self._kept, "keep_from": self._keep_from_s}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        self._saved_at_s = dict(state["saved_at"])
        self._kept = list(state["kept"])
        self._keep_from_s = state["keep_from"]

    def _ask(self, reason: str) -> None:
        self._next_s = self.trainer.monitors.now() + self._every_s
        self.trainer.at_boundary(lambda: self.desk.ask(reason, self._after_save))

    def _after_save(self, info: CheckpointInfo) -> None:
        self._saved_at_s[info.name] = self.trainer.monitors.now()
        # Only now: names that were given at this moment have been given, and an old best one may go.
        self.trainer.at_boundary(self._remove_old)

    def _remove_old(self) -> None:
        store = self.desk.store
        checkpoints = store.list()
        named = set(store.names().values())
        older = checkpoints[: -self._max_to_keep] if self._max_to_keep else []
        for info in older:
            if info.name not in named and not self._is_kept_for_its_age(info):
                store.remove(info.name)
                self.trainer.monitors.put_event(
                    CheckpointRemoved(
                        time=self.trainer.monitors.now(), name=info.name, reason=f"max_to_keep={self._max_to_keep}"
                    )
                )
        present = {info.name for info in store.list()}
        self._saved_at_s = {name: at for name, at in self._saved_at_s.items() if name in present}
        self._kept = [name for name in self._kept if name in present]

    def _is_kept_for_its_age(self, info: CheckpointInfo) -> bool:
        if info.name in self._kept:
            return True
        # A checkpoint does not hold the moment of its own save, so after a resume its file tells.
        saved_at_s = self._saved_at_s.get(info.name) or info.path.stat().st_mtime
        if not self._keep_every_s or self._keep_from_s is None or saved_at_s < self._keep_from_s:
            return False
        self._kept.append(info.name)
        self._keep_from_s = saved_at_s + self._keep_every_s
        return True


def _checked(name: str, value: Any) -> Any:
    if value is not None and value < 0:
        raise ConfigurationError(f"`{name}` is {value}, below 0.", advice="Leave it out for its default.")
    return value


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
