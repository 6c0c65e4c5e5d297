"""Weights that a job starts from: the checkpoint of another job, or one of its framework."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ziggurat.engine.capabilities import SupportsCheckpoints
from ziggurat.engine.checkpoints import CheckpointStore, with_averages
from ziggurat.entities.backend_info import BackendInfo, checkpoint_advice
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.errors import CheckpointError
from ziggurat.layout import JobFolder, checkpoint_step

__all__ = ["read_pretrained"]


def read_pretrained(path: Path, backend: object, info: BackendInfo) -> dict[str, np.ndarray]:
    """Return variable name → array; of weights that were averaged, the averages.

    Args:
        path: a job folder (its best checkpoint, or its newest), one of its checkpoints, or a checkpoint of the
            backend's framework, such as the prefix ``model.ckpt`` of TensorFlow's.
        backend: that of the job.
        info: what is known of it.

    Raises:
        CheckpointError: where there is none.
    """
    if checkpoint_step(path.name) is not None:
        return with_averages(CheckpointStore(path.parent, writable=False).load(path.name).arrays)
    if JobFolder(path).checkpoints.is_dir():
        store = CheckpointStore(JobFolder(path).checkpoints, writable=False)
        best = best_checkpoint(JobFolder(path))
        if best is not None and best.basis != "newest":
            return with_averages(store.load(best.checkpoint.name).arrays)
        newest = store.latest()
        if newest is not None:
            return with_averages(newest[1].arrays)
    if info.has_checkpoint(path) and isinstance(backend, SupportsCheckpoints):
        return dict(backend.read_checkpoint(path))
    raise CheckpointError(
        "`pretrained` must be a job folder with a checkpoint, or a checkpoint of the backend's framework.",
        received=str(path),
        advice=checkpoint_advice(),
    )
