"""Checkpoints of a job outside of a training: list, show, remove."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ziggurat.entities.best_checkpoint import best_checkpoint, find_checkpoint, given_names
from ziggurat.errors import CheckpointError
from ziggurat.layout import CheckpointFiles, JobFolder, checkpoint_step
from ziggurat.workspace.checkpoint_arrays import (
    ArrayDifference,
    ArraySummary,
    array_differences,
    array_summaries,
    damage_named,
)

__all__ = [
    "CheckpointDetails",
    "CheckpointSummary",
    "checkpoint_details",
    "checkpoint_differences",
    "list_checkpoints",
    "remove_checkpoint",
]


@dataclass(frozen=True)
class CheckpointSummary:
    """One checkpoint of a job.

    Args:
        name: folder name.
        step: ``global_step`` that it holds.
        size_bytes: size on disk.
        given_names: names that point at it, such as ``best``.
        best_by: of the best one, the metric and value that decided; empty for the others.
    """

    name: str
    step: int
    size_bytes: int
    given_names: list[str]
    best_by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class CheckpointDetails:
    """What a checkpoint holds.

    Args:
        summary: the checkpoint.
        epoch: epoch that it holds.
        scalars: newest value of each tag at that moment.
        callbacks: names of the callbacks whose state it holds.
        arrays: the program's arrays.
    """

    summary: CheckpointSummary
    epoch: int
    scalars: dict[str, float]
    callbacks: list[str]
    arrays: list[ArraySummary]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self.summary), **{key: value for key, value in asdict(self).items() if key != "summary"}}


def list_checkpoints(job: JobFolder) -> list[CheckpointSummary]:
    """Return the complete checkpoints of a job, oldest step first."""
    folder = job.checkpoints
    given = given_names(job)
    found = [path for path in folder.iterdir() if checkpoint_step(path.name) is not None] if folder.is_dir() else []
    summaries = [_summary(path, given) for path in sorted(found, key=lambda path: checkpoint_step(path.name) or 0)]
    best = best_checkpoint(job)
    if best is None or best.basis == "newest":
        return summaries
    return [replace(each, best_by=best.why) if each.name == best.checkpoint.name else each for each in summaries]


def checkpoint_details(job: JobFolder, name: str) -> CheckpointDetails:
    """Return what a checkpoint holds.

    Args:
        job: the job folder.
        name: folder name, given name, ``best`` or ``latest``.

    Raises:
        CheckpointError: where it is not there or is damaged.
    """
    files = _find(job, name)
    arrays = array_summaries(files)
    with damage_named(files.path):
        meta = json.loads(files.state.read_bytes())["meta"]
        return CheckpointDetails(
            summary=_summary(files.path, given_names(job)),
            epoch=int(meta["epoch_num"]),
            scalars={tag: float(point[1]) for tag, point in sorted(meta.get("latest", {}).items())},
            callbacks=sorted(each for each, state in meta.get("callbacks", {}).items() if state is not None),
            arrays=arrays,
        )


def checkpoint_differences(
    first_job: JobFolder, first: str, second_job: JobFolder, second: str
) -> list[ArrayDifference]:
    """Return how the arrays of two checkpoints differ, in the order of the first one's arrays.

    Raises:
        CheckpointError: where one of them is not there or is damaged.
    """
    return array_differences(_find(first_job, first), _find(second_job, second))


def remove_checkpoint(job: JobFolder, name: str) -> str:
    """Remove a checkpoint that no given name points at; return its folder name.

    Raises:
        CheckpointError: where it is not there, or a given name points at it.
    """
    path = _find(job, name).path
    pointing = sorted(given for given, target in given_names(job).items() if target == path.name)
    if pointing:
        raise CheckpointError(
            f"A checkpoint that a name points at is kept: `{pointing[0]}` is {path.name}.",
            advice="Remove another one; this one goes when the name moves on.",
        )
    # Renamed first: half a checkpoint must not look complete. A training clears away what is left of it.
    doomed = path.with_name(f".tmp-removed-{path.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
    return path.name


def _find(job: JobFolder, name: str) -> CheckpointFiles:
    return CheckpointFiles(job.checkpoints / find_checkpoint(job, name).name)


def _summary(path: Path, given: dict[str, str]) -> CheckpointSummary:
    return CheckpointSummary(
        name=path.name,
        step=checkpoint_step(path.name) or 0,
        size_bytes=sum(part.stat().st_size for part in path.iterdir()),
        given_names=sorted(name for name, target in given.items() if target == path.name),
    )
