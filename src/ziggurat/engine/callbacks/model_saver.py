"""Regular checkpointing: periodically, at the end, and on stop; and the rules for which checkpoints are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.engine.callbacks.recurring import Period
from ziggurat.engine.callbacks.saving import Saver
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.errors import ConfigurationError
from ziggurat.events import CheckpointRemoved

__all__ = ["ModelSaver"]


class ModelSaver(Saver):
    """Saves the whole run state: weights, optimizer, callbacks, random generators, data position.

    It saves by the periods below, after the last epoch, and when training is stopped. The newest ``max_to_keep``
    checkpoints stay; of the older ones, those with a name (``min-validation_error``) and one for each
    ``keep_checkpoint_every_n_hours``. Every save and removal is an event.

    Args:
        store: the store or its folder; where it is left out, ``place()`` gives the job's ``checkpoints/``.
        max_to_keep: how many of the newest stay; None or 0 for all.
        keep_checkpoint_every_n_hours: also keep one for each time of this length; None for none.
        every_k_epochs: save after every k-th epoch; None for not.
        every_k_steps: save after every k-th step; None for not.
        every_minutes: save when this much time has passed since the last save, by the trainer's clock; None for not.
        save_on_stop: save when somebody stops the training.

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
        raise ConfigurationError(
            f"`{name}` must not be negative.", received=value, advice="Leave it out for its default."
        )
    return value
