"""Weights of a module: from files and checkpoints, and into files; and one seed for everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_model
from torch import nn

from ziggurat.backends.torch.backend import read_weights
from ziggurat.backends.torch.state import give_weights, weights_of
from ziggurat.dataflow.random import fix_rng_seed
from ziggurat.engine.checkpoints import CheckpointStore, with_averages
from ziggurat.engine.restore_plan import RestorePlan, plan_restore
from ziggurat.engine.run_state import seed_global_random
from ziggurat.errors import ConfigurationError, MissingCheckpointError
from ziggurat.layout import JobFolder

__all__ = ["load_weights", "save_weights", "seed_everything"]


def load_weights(module: nn.Module, path: str | Path, *, name: str = "", partial: bool = False) -> RestorePlan:
    """Give a module the weights of a file or of a checkpoint; averaged weights where the checkpoint has them.

    Args:
        module: whose weights; it stays where it is.
        path: a ``.safetensors``, ``.pt`` or ``.pth`` file, or the folder of a training or of its checkpoints.
        name: of a checkpoint in the folder, such as ``min-validation_cost``; empty for the newest.
        partial: whether weights that fit by name and shape are taken and the others left; otherwise all must fit.

    Returns:
        what happened to each weight.

    Raises:
        CheckpointError: where there is none, or it is of another network.
    """
    found = _read(Path(path), name)
    own = weights_of(module)
    if partial:
        found = {key: each for key, each in found.items() if key not in own or each.shape == own[key].shape}
    plan = plan_restore({key: array.shape for key, array in own.items()}, found, ())
    taken = {key: found[source] for key, source in plan.restored.items()}
    give_weights(module, {**own, **taken} if partial else found)
    return plan


def save_weights(module: nn.Module, path: str | Path) -> None:
    """Write the weights of a module into a ``.safetensors`` file, which needs neither Ziggurat nor pickle to be read.

    Raises:
        ConfigurationError: where the file has another ending.
    """
    if Path(path).suffix != ".safetensors":
        raise ConfigurationError(
            f"{path} does not end in `.safetensors`, the format in which weights are written.",
            advice="Name the file so.",
        )
    save_model(module, str(path))


def seed_everything(seed: int) -> int:
    """Let a seed decide all that follows: ``random``, ``numpy.random``, ``torch``, and data flows made from now on.

    Returns:
        the seed.
    """
    seed_global_random(seed)
    fix_rng_seed(seed)
    torch.manual_seed(seed)
    return seed


def _read(path: Path, name: str) -> dict[str, Any]:
    if not path.is_dir():
        return read_weights(path)
    folder = JobFolder(path).checkpoints
    store = CheckpointStore(folder if folder.is_dir() else path, writable=False)
    if name:
        return with_averages(store.load(name).arrays)
    newest = store.latest()
    if newest is None:
        raise MissingCheckpointError(
            f"{path} must hold a checkpoint.", received="none", advice="Train with `ModelSaver()`, or name a file."
        )
    return with_averages(newest[1].arrays)
