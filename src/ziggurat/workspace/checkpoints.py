"""Checkpoints of a job outside of a training: list, choose, show, compare their arrays, remove."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ziggurat.entities.best_checkpoint import best_checkpoint, find_checkpoint, given_names
from ziggurat.errors import CheckpointError
from ziggurat.layout import CheckpointFiles, JobFolder, checkpoint_step

if TYPE_CHECKING:
    import numpy as np
from collections.abc import Mapping

from ziggurat.entities import Job
from ziggurat.entities.best_checkpoint import (
    BestCheckpoint,
    KeptCheckpoint,
    kept_checkpoints,
)
from ziggurat.errors import JobError

__all__ = [
    "ArrayDifference",
    "CheckpointDetails",
    "CheckpointSummary",
    "best_of_model",
    "checkpoint_choices",
    "checkpoint_details",
    "checkpoint_differences",
    "checkpoint_marks",
    "checkpoints_of_model",
    "chosen_checkpoint",
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
        raise JobError(f"{job.id} is of kind {job.kind}; this needs a job of kind train.")
    folder = JobFolder(Path(job.folder))
    if not kept_checkpoints(folder):
        raise CheckpointError(
            f"{job.id} has no checkpoint yet; it is {job.state}.",
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


@dataclass(frozen=True)
class ArraySummary:
    """One array of a checkpoint: its name, shape, type and size in memory."""

    name: str
    shape: list[int]
    dtype: str
    size_bytes: int


@dataclass(frozen=True)
class ArrayDifference:
    """How one array differs between two checkpoints.

    Args:
        name: its name.
        kind: ``equal``, ``values``, ``shape``, ``only_first`` or ``only_second``.
        largest: largest absolute difference; None where values cannot be compared.
        mean: mean absolute difference; None where values cannot be compared.
    """

    name: str
    kind: str
    largest: float | None = None
    mean: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def array_summaries(files: CheckpointFiles) -> list[ArraySummary]:
    """Return the arrays of a checkpoint in their order, from their headers.

    Raises:
        CheckpointError: where the file is damaged.
    """
    with _open_arrays(files) as archive:
        return [_summary_of_array(archive, name, member) for name, member in _members(archive).items()]


def array_differences(one: CheckpointFiles, other: CheckpointFiles) -> list[ArrayDifference]:
    """Return how the arrays of two checkpoints differ, in the order of the first one's.

    Raises:
        CheckpointError: where one of them is damaged.
    """
    with _open_arrays(one) as first_archive, _open_arrays(other) as second_archive:
        first_members, second_members = _members(first_archive), _members(second_archive)
        differences = [
            _difference(name, _read(first_archive, member), _read(second_archive, second_members[name]))
            if name in second_members
            else ArrayDifference(name, "only_first")
            for name, member in first_members.items()
        ]
        only_second = [name for name in second_members if name not in first_members]
        return differences + [ArrayDifference(name, "only_second") for name in only_second]


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever reading a damaged checkpoint raises into a ``CheckpointError`` that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"The checkpoint {path} is damaged: {error}.", advice="Resume from an older one; this one can be removed."
        ) from error


@contextmanager
def _open_arrays(files: CheckpointFiles) -> Iterator[zipfile.ZipFile]:
    with damage_named(files.path), zipfile.ZipFile(files.arrays) as archive:
        yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return array name → member: the arrays are numbered, their names stand in an array of their own."""
    names = _read(archive, "names.npy")
    return {str(name): f"a{number}.npy" for number, name in enumerate(names)}


def _read(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    import numpy as np

    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _summary_of_array(archive: zipfile.ZipFile, name: str, member: str) -> ArraySummary:
    with archive.open(member) as file:
        shape, dtype = _read_header(file)
    return ArraySummary(name, list(shape), str(dtype), math.prod(shape) * dtype.itemsize)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    import numpy as np

    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _difference(name: str, one: np.ndarray, other: np.ndarray) -> ArrayDifference:
    import numpy as np

    if one.shape != other.shape:
        return ArrayDifference(name, "shape")
    if np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"):
        return ArrayDifference(name, "equal", 0.0, 0.0)
    gap = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return ArrayDifference(name, "values", float(gap.max()), float(gap.mean()))
