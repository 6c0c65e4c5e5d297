"""Owns reading the weights that a job starts from: a job's checkpoint, or one of TensorFlow's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.errors import CheckpointError, MissingDependencyError
from ziggurat.layout import JobFolder, checkpoint_step

__all__ = ["read_pretrained"]


def read_pretrained(path: Path) -> dict[str, np.ndarray]:
    """Return variable name → array.

    Args:
        path: a job folder (its best checkpoint, or its newest), one of its checkpoints, or the prefix of a TensorFlow
            checkpoint (``model.ckpt``).

    Raises:
        CheckpointError: where there is none.
        MissingDependencyError: where it is one of TensorFlow's, and that is not installed.
    """
    if checkpoint_step(path.name) is not None:
        return dict(CheckpointStore(path.parent, writable=False).load(path.name).arrays)
    if JobFolder(path).checkpoints.is_dir():
        store = CheckpointStore(JobFolder(path).checkpoints, writable=False)
        best = next((name for name in sorted(store.names()) if name.startswith(("min-", "max-"))), None)
        if best is not None:
            return dict(store.load(best).arrays)
        newest = store.latest()
        if newest is not None:
            return dict(newest[1].arrays)
    if Path(f"{path}.index").is_file():
        return _tensorflow_checkpoint(path)
    raise CheckpointError(
        "`pretrained` must be a job folder with a checkpoint, or the prefix of a TensorFlow checkpoint.",
        received=str(path),
        advice="Check the path; a prefix is the path without `.index`.",
    )


def _tensorflow_checkpoint(prefix: Path) -> dict[str, np.ndarray]:
    try:
        import tensorflow
    except ImportError as error:
        raise MissingDependencyError("tensorflow", extra="tensorflow", purpose="TensorFlow checkpoints") from error
    reader = tensorflow.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
