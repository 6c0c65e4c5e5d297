"""The table of checkpoints on the page of a job, with a mark at the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ziggurat.entities import Checkpoint, Job
from ziggurat.workspace.studio.checkpoint_choice import best_of_model, checkpoint_marks, checkpoints_of_model

__all__ = ["CheckpointRow", "CheckpointTable", "checkpoint_table"]

_SHOWN_SCALARS: Final = 4
_UNSHOWN: Final = ("StepTime/", "Throughput", "learning_rate", "GPU", "Memory")
_FIRST: Final = ("validation_accuracy", "validation_error", "validation_cost", "validation_loss", "accuracy", "cost")
"""Curves whose values are shown before others."""


@dataclass(frozen=True, kw_only=True)
class CheckpointRow:
    """One checkpoint.

    Args:
        checkpoint: it.
        names: that point at it, such as ``min-validation_error``.
        values: of the table's tags; None where it has none.
    """

    checkpoint: Checkpoint
    names: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class CheckpointTable:
    """The checkpoints of a job.

    Args:
        tags: names of the curves whose values are shown.
        rows: the newest first.
        best: in words, the checkpoint that is used if none is named; empty where there is none.
    """

    tags: tuple[str, ...] = ()
    rows: tuple[CheckpointRow, ...] = field(default=())
    best: str = ""


def checkpoint_table(job: Job, checkpoints: Sequence[Checkpoint]) -> CheckpointTable:
    """Return what is shown of a job's checkpoints.

    Args:
        job: whose.
        checkpoints: the oldest step first.
    """
    names, best = checkpoint_marks(job), best_of_model(job)
    # A checkpoint between two validations does not have the values of the earlier one.
    measured = {each.name: each.values for each in checkpoints_of_model(job) if each.epoch is not None}
    tags = _scalar_tags(checkpoints)
    return CheckpointTable(
        tags=tags,
        rows=tuple(
            CheckpointRow(
                checkpoint=each,
                names=names.get(each.name, ()),
                values=tuple(measured.get(each.name, each.scalars).get(tag) for tag in tags),
            )
            for each in reversed(checkpoints)
        ),
        best="" if best is None else best.text,
    )


def _scalar_tags(checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    tags = {tag for each in checkpoints for tag in each.scalars if not tag.startswith(_UNSHOWN)}
    known = [tag for tag in _FIRST if tag in tags]
    further = sorted(tags - set(known), key=lambda tag: (not tag.startswith("validation"), tag))
    return tuple([*known, *further][:_SHOWN_SCALARS])
