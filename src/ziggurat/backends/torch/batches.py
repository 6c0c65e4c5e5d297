"""Batches of any form, as PyTorch programs take them: their rows, and their way to a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ziggurat.engine.callbacks.batches import batch_size

__all__ = ["on_device", "row_count", "rows_of"]


def row_count(batch: Any) -> int:
    """Return the number of samples in a batch.

    Raises:
        DataError: where nothing in it has a length.
    """
    return batch_size(batch)


def rows_of(batch: Any, first: int, end: int) -> Any:
    """Return the samples ``first`` to ``end - 1`` of a batch, in the same form.

    Every array and tensor with an axis is cut; anything else belongs to all samples alike.
    """
    if isinstance(batch, torch.Tensor | np.ndarray):
        return batch[first:end] if batch.ndim else batch
    if isinstance(batch, Mapping):
        return {name: rows_of(part, first, end) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(rows_of(part, first, end) for part in batch)
    if isinstance(batch, list):
        if any(isinstance(part, torch.Tensor | np.ndarray | Mapping | list | tuple) for part in batch):
            return [rows_of(part, first, end) for part in batch]
        return batch[first:end]  # names or numbers of the samples
    return batch


def on_device(batch: Any, device: torch.device, memory_format: torch.memory_format | None = None) -> Any:
    """Return a batch with its arrays as tensors on a device; what is no array stays as it is.

    Args:
        batch: arrays and tensors in lists, tuples and mappings.
        device: where to.
        memory_format: of tensors with four axes that hold no whole numbers; None for theirs.
    """
    kind = type(batch)
    if kind is list or kind is tuple:
        return [on_device(part, device, memory_format) for part in batch]
    if kind is np.ndarray:
        if batch.dtype.kind not in "biufc":
            return batch
        batch = torch.from_numpy(batch)
    elif kind is not torch.Tensor:  # tensors and arrays, of which every step has some, are asked for nothing else
        if isinstance(batch, Mapping):
            return {name: on_device(part, device, memory_format) for name, part in batch.items()}
        if isinstance(batch, list | tuple):  # a subclass
            return [on_device(part, device, memory_format) for part in batch]
        if isinstance(batch, np.generic):
            batch = torch.tensor(batch.item())
        elif not isinstance(batch, torch.Tensor):
            return batch
    if batch.device != device:
        batch = batch.to(device, non_blocking=True)
    if memory_format is not None and batch.ndim == 4 and batch.is_floating_point():
        batch = batch.contiguous(memory_format=memory_format)
    return batch
