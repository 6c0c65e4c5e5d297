"""Weights that a job starts from: the checkpoint of another job, or one of its framework."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from ziggurat.engine.averages import with_averages
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.errors import CheckpointError
from ziggurat.layout import JobFolder, checkpoint_step

__all__ = ["ReadsCheckpoints", "read_pretrained"]


@runtime_checkable
class ReadsCheckpoints(Protocol):
    """A backend that reads its framework's own checkpoints."""

    def read_checkpoint(self, path: Path) -> dict[str, np.ndarray]:
        """Return variable name → array."""
        ...


def read_pretrained(path: Path, backend: object) -> dict[str, np.ndarray]:
    """Return variable name → array; of weights that were averaged, the averages.

    Args:
        path: a job folder (its best checkpoint, or its newest), one of its checkpoints, or a checkpoint of the
            backend's framework, such as the prefix ``model.ckpt`` of TensorFlow's.
        backend: that of the job.

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
    if Path(f"{path}.index").is_file() and isinstance(backend, ReadsCheckpoints):
        return backend.read_checkpoint(path)
    raise CheckpointError(
        "`pretrained` must be a job folder with a checkpoint, or a checkpoint of the backend's framework.",
        received=str(path),
        advice="Check the path; TensorFlow's is the path without `.index`.",
    )
