"""The checkpoint of a model that a name means: its own name, a given name, ``best``, ``latest``, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ziggurat.entities import Job
from ziggurat.entities.best_checkpoint import (
    BestCheckpoint,
    KeptCheckpoint,
    best_checkpoint,
    find_checkpoint,
    given_names,
    kept_checkpoints,
)
from ziggurat.errors import CheckpointError, JobError
from ziggurat.layout import JobFolder

__all__ = [
    "best_of_model",
    "checkpoint_choices",
    "checkpoint_marks",
    "checkpoints_of_model",
    "chosen_checkpoint",
]


def chosen_checkpoint(job: Job, name: str = "") -> KeptCheckpoint:
    """Return the checkpoint of a training that a name means now.

    Args:
        job: a training.
        name: of its folder, a given name, ``best`` or ``latest``; empty: the best, or else the latest.

    Raises:
        JobError: where the job is no training.
        CheckpointError: where it has no checkpoint.
        MissingCheckpointError: where it has none of that name.
    """
    if job.kind != "train":
        raise JobError("This needs a job of kind train.", received=f"{job.id}, of kind {job.kind}")
    folder = JobFolder(Path(job.folder))
    if not kept_checkpoints(folder):
        raise CheckpointError(
            "A model that is used has a checkpoint.",
            received=f"{job.id}, which is {job.state} and has none",
            advice="Let it train first.",
        )
    return find_checkpoint(folder, name)


def best_of_model(job: Job) -> BestCheckpoint | None:
    """Return the checkpoint of a training that is used if none is named; None where it has none."""
    return best_checkpoint(JobFolder(Path(job.folder)))


def checkpoints_of_model(job: Job) -> list[KeptCheckpoint]:
    """Return the checkpoints of a training with the values that were measured at them, the oldest step first."""
    return kept_checkpoints(JobFolder(Path(job.folder)))


def checkpoint_marks(job: Job) -> Mapping[str, tuple[str, ...]]:
    """Return checkpoint → the names that people and callbacks gave it, in the order of their letters."""
    found: dict[str, tuple[str, ...]] = {}
    for given, target in sorted(given_names(JobFolder(Path(job.folder))).items()):
        found[target] = (*found.get(target, ()), given)
    return found


def checkpoint_choices(job: Job) -> list[tuple[str, str]]:
    """Return (value, text) of what can be chosen: the best with the step that it is now, then each, the newest first.

    It is empty where there is no checkpoint.
    """
    best, marks = best_of_model(job), checkpoint_marks(job)
    if best is None:
        return []
    found = [("", best.text)]
    for each in reversed(checkpoints_of_model(job)):
        is_best = each.name == best.checkpoint.name and best.basis != "newest"
        words = f" – best ({best.why})" if is_best else "".join(f", {name}" for name in marks.get(each.name, ()))
        found.append((each.name, f"{each.place[:1].upper()}{each.place[1:]}{words}"))
    return found
