"""Disk space: the free space, and the retention rules for checkpoints and deleted jobs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ziggurat.entities import Checkpoint
from ziggurat.events import CheckpointRemoved, EventFile
from ziggurat.layout import CHECKPOINT_NAMES, JobFolder, checkpoint_step

__all__ = [
    "Retention",
    "apply_retention",
    "free_bytes",
    "has_checkpoint",
    "remove_checkpoints",
    "what_to_empty",
    "what_to_remove",
]


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What is kept.

    Args:
        keep_last: newest checkpoints of a job that ended, besides those that a name such as ``min-validation_error``
            points at; None for all.
        trash_age_s: how long a deleted job stays in the trash; 0 for no time.
    """

    keep_last: int | None = None
    trash_age_s: float = 0.0


def free_bytes(path: Path) -> int:
    """Return the space that is free where a folder is, or will be; 0 where the disk cannot be asked."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        return shutil.disk_usage(there).free
    except OSError:
        return 0


def what_to_remove(checkpoints: Iterable[Checkpoint], names: Mapping[str, str], rules: Retention) -> list[str]:
    """Return the names of the checkpoints that need not be kept, oldest first. The newest one always is.

    Args:
        checkpoints: of one job that ended.
        names: given name → checkpoint, such as ``min-validation_error`` → ``step-00000042``.
        rules: what is kept.
    """
    if rules.keep_last is None:
        return []
    oldest_first = sorted(checkpoints, key=lambda checkpoint: checkpoint.step)
    kept = {checkpoint.name for checkpoint in oldest_first[-max(1, rules.keep_last) :]}
    return [each.name for each in oldest_first if each.name not in kept | set(names.values())]


def what_to_empty(now: float, rules: Retention, *, disk_is_low: bool = False) -> float:
    """Return the moment before which a job must have been deleted to be removed from the disk now.

    Args:
        now: seconds since 1970.
        rules: what is kept.
        disk_is_low: whether jobs wait for space: then all that was deleted goes.
    """
    return now if disk_is_low else now - max(0.0, rules.trash_age_s)


def apply_retention(folder: JobFolder, rules: Retention, now: float) -> list[str]:
    """Remove the checkpoints of a job that need not be kept, and say so in its events; return their names.

    No worker may be at the job, or be started meanwhile.

    Args:
        folder: the job folder.
        rules: what is kept.
        now: seconds since 1970.

    Raises:
        StorageError: where the events cannot be written; then a checkpoint less is there than they tell.
    """
    removed = what_to_remove(_checkpoints_in(folder), _given_names(folder), rules)
    remove_checkpoints(folder, removed)
    if removed:
        rule = f"the newest {rules.keep_last} and those with a name are kept"
        with closing(EventFile(folder.events)) as events:
            events.write(*(CheckpointRemoved(time=now, name=name, reason=rule) for name in removed))
    return removed


def has_checkpoint(folder: JobFolder) -> bool:
    """Return whether a job has a checkpoint to resume from."""
    return bool(_checkpoints_in(folder))


def _checkpoints_in(folder: JobFolder) -> list[Checkpoint]:
    try:
        found = {path.name: checkpoint_step(path.name) for path in folder.checkpoints.iterdir()}
    except OSError:
        return []
    return [Checkpoint(name=name, step=step, epoch=0) for name, step in found.items() if step is not None]


def _given_names(folder: JobFolder) -> dict[str, str]:
    try:
        names = json.loads((folder.checkpoints / CHECKPOINT_NAMES).read_bytes())
    except FileNotFoundError:
        return {}
    return names if isinstance(names, dict) else {}


def remove_checkpoints(folder: JobFolder, names: Sequence[str]) -> int:
    """Remove checkpoints of a job that no worker is at; return how many bytes that freed.

    Each is renamed first: half a checkpoint must not look complete.
    """
    freed = 0
    for name in names:
        path = folder.checkpoints / name
        if not path.is_dir() or path.name != name or name == CHECKPOINT_NAMES:
            continue
        doomed = path.with_name(f".tmp-removed-{name}")
        shutil.rmtree(doomed, ignore_errors=True)
        size = sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
        freed += size
    return freed
