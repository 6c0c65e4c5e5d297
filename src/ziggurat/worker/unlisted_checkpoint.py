"""A checkpoint whose event is missing, as its worker was killed after the save: the next attempt writes the event."""

from __future__ import annotations

from contextlib import suppress

from ziggurat.engine.checkpoints import CheckpointInfo
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import JobError
from ziggurat.events import CheckpointRemoved, CheckpointSaved, decode_event
from ziggurat.layout import JobFolder

__all__ = ["unlisted_checkpoint"]


def unlisted_checkpoint(folder: JobFolder, info: CheckpointInfo, trainer: Trainer) -> list[CheckpointSaved]:
    """Return the missing event of a checkpoint, for lists of checkpoints; none if the events tell of it.

    Args:
        folder: the job folder.
        info: the checkpoint.
        trainer: at the state of the checkpoint.
    """
    if _is_listed(folder, info.name):
        return []
    saved = CheckpointSaved(
        time=info.path.stat().st_mtime,
        name=info.name,
        step=info.step,
        epoch=trainer.epoch_num,
        reason="found on resume",
        size_bytes=info.size_bytes,
        scalars=dict(trainer.monitors.latest()),
    )
    return [saved]


def _is_listed(folder: JobFolder, name: str) -> bool:
    is_listed = False
    if not folder.events.exists():
        return is_listed
    with folder.events.open("rb") as lines:
        for line in lines:
            if b'"checkpoint_saved"' in line or b'"checkpoint_removed"' in line:  # most lines are numbers of steps
                with suppress(JobError, ValueError, KeyError, TypeError):
                    event = decode_event(line)
                    if isinstance(event, CheckpointSaved | CheckpointRemoved) and event.name == name:
                        is_listed = isinstance(event, CheckpointSaved)
    return is_listed
