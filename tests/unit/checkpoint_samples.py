"""Checkpoints that a test writes as a training does, with the values that were measured at them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.layout import JobFolder

__all__ = ["write_checkpoint"]


def write_checkpoint(
    folder: Path | str, step: int, epoch: int, *, measured_at: int | None = None, given: str = "", **values: float
) -> str:
    """Write a checkpoint into a job folder; return its name.

    Args:
        folder: of the job.
        step: that it holds.
        epoch: that it holds.
        measured_at: step at which the values were measured; that of the checkpoint where it is left out.
        given: name that marks it.
        values: tag → value.
    """
    store = CheckpointStore(JobFolder(Path(folder)).checkpoints)
    at = step if measured_at is None else measured_at
    latest: Mapping[str, list[float]] = {tag: [at, value] for tag, value in values.items()}
    meta = {"global_step": step, "epoch_num": epoch, "latest": latest}
    name = store.save(RunState(meta, {"weight": np.zeros(1)})).name
    if given:
        store.give_name(given, name)
    return name
