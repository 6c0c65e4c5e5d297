"""Coordination of checkpoint saves: one checkpoint per boundary, however many callbacks request one.

A saver never saves in its own hook, because other callbacks may still have work to do. At the boundary, each saver
first *judges* (is this value the best?) and requests a save; the save runs after all have judged. So the position of
a saver in the list does not matter, and the saved state of every saver includes that save.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ziggurat.engine.callback import Callback
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.engine.monitors.binding import NeedsFolder, innermost, missing_folder
from ziggurat.events import CheckpointSaved
from ziggurat.layout import JobFolder

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["CheckpointCoordinator", "Saver", "newest_checkpoint"]


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
        store: the store or its folder; None for the one that another saver of the list has, or that ``place()`` gives.
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


def _savers(trainer: Trainer) -> list[Saver]:
    inside = (innermost(callback) for callback in trainer.callbacks)
    return [callback for callback in inside if isinstance(callback, Saver)]
