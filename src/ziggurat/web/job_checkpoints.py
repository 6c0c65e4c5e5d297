"""Owns what the page of a job shows of its checkpoints, and which of them is the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ziggurat.entities import Checkpoint, Job
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder, best_given_name
from ziggurat.workspace.checkpoint_files import list_checkpoints

__all__ = ["CheckpointRow", "CheckpointTable", "checkpoint_table"]

_SHOWN_SCALARS: Final = 4
_UNSHOWN: Final = ("StepTime/", "Throughput", "learning_rate", "GPU", "Memory")
_JUDGES: Final = (
    ("validation_accuracy", max),
    ("validation_error", min),
    ("validation_cost", min),
    ("validation_loss", min),
    ("accuracy", max),
    ("cost", min),
)
"""Curves by which a checkpoint is the best where nobody asked to keep the best, the first that there is."""


@dataclass(frozen=True, kw_only=True)
class CheckpointRow:
    """One checkpoint.

    Args:
        checkpoint: it.
        names: that point at it, such as ``min-validation_error``.
        values: of the table's tags; None where it has none.
        best_by: why it is the best; empty where it is not.
    """

    checkpoint: Checkpoint
    names: tuple[str, ...]
    values: tuple[float | None, ...]
    best_by: str


@dataclass(frozen=True, kw_only=True)
class CheckpointTable:
    """The checkpoints of a job.

    Args:
        tags: names of the curves whose values are shown.
        rows: the newest first.
    """

    tags: tuple[str, ...] = ()
    rows: tuple[CheckpointRow, ...] = field(default=())


def checkpoint_table(job: Job, checkpoints: Sequence[Checkpoint]) -> CheckpointTable:
    """Return what is shown of a job's checkpoints.

    Args:
        job: whose.
        checkpoints: the oldest step first.
    """
    names = _given_names(job)
    best, why = _best(checkpoints, names)
    tags = _scalar_tags(checkpoints)
    return CheckpointTable(
        tags=tags,
        rows=tuple(
            CheckpointRow(
                checkpoint=each,
                names=names.get(each.name, ()),
                values=tuple(each.scalars.get(tag) for tag in tags),
                best_by=why if each.name == best else "",
            )
            for each in reversed(checkpoints)
        ),
    )


def _given_names(job: Job) -> dict[str, tuple[str, ...]]:
    try:
        return {each.name: tuple(each.given_names) for each in list_checkpoints(JobFolder(Path(job.folder)))}
    except (OSError, ZigguratError):  # one is removed at this moment; the next look will tell
        return {}


def _best(checkpoints: Sequence[Checkpoint], names: dict[str, tuple[str, ...]]) -> tuple[str, str]:
    given = best_given_name(each for several in names.values() for each in several)
    if given is not None:
        return next(name for name, several in names.items() if given in several), given
    for tag, judge in _JUDGES:
        values = {each.name: each.scalars[tag] for each in checkpoints if tag in each.scalars}
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        if len(finite) > 1:
            word = "highest" if judge is max else "lowest"
            return judge(finite, key=lambda name: finite[name]), f"{word} {tag}"
    return "", ""


def _scalar_tags(checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    tags = {tag for each in checkpoints for tag in each.scalars if not tag.startswith(_UNSHOWN)}
    known = [tag for tag, _ in _JUDGES if tag in tags]
    further = sorted(tags - set(known), key=lambda tag: (not tag.startswith("validation"), tag))
    return tuple([*known, *further][:_SHOWN_SCALARS])
