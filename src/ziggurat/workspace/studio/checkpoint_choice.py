"""Owns which checkpoint of a model is meant: by its name, a given name, ``best``, ``latest``, or without any."""

from __future__ import annotations

from pathlib import Path

from ziggurat.entities import Job
from ziggurat.errors import CheckpointError, JobError, MissingCheckpointError
from ziggurat.layout import JobFolder, best_given_name
from ziggurat.workspace.checkpoint_files import CheckpointSummary, list_checkpoints

__all__ = ["chosen_checkpoint"]


def chosen_checkpoint(job: Job, name: str = "") -> CheckpointSummary:
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
    found = list_checkpoints(JobFolder(Path(job.folder)))
    if not found:
        raise CheckpointError(
            "A model that is used has a checkpoint.",
            received=f"{job.id}, which is {job.state} and has none",
            advice="Let it train first.",
        )
    wanted = name
    if name in ("", "best"):
        wanted = best_given_name(given for each in found for given in each.given_names) or ("" if name else "latest")
    if wanted == "latest":
        return found[-1]
    for each in found:
        if wanted and wanted in (each.name, *each.given_names):
            return each
    known = sorted({known for each in found for known in (each.name, *each.given_names)})
    raise MissingCheckpointError(
        f"There is no checkpoint `{name}` of {job.id}.",
        advice=f"There are: {', '.join(known)}.",
        details={"name": name},
    )
