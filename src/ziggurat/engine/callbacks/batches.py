"""Batches as named arrays: number of samples, keys, and npz files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.atomic import replaced_file
from ziggurat.errors import DataError

__all__ = ["batch_arrays", "batch_keys", "batch_size", "plain_array", "write_arrays"]

_KEY_NAMES = ("key", "keys")


def batch_size(batch: Any) -> int:
    """Return the number of samples in a batch: the length of its first component.

    The first component is element 0 of a list or tuple, the first value of a dict, or the batch itself where it is one
    array; nested ones are opened.

    Raises:
        DataError: where nothing in the batch has a length.
    """
    part = batch
    while isinstance(part, Mapping | list | tuple) and len(part) > 0:
        first = next(iter(part.values())) if isinstance(part, Mapping) else part[0]
        if not hasattr(first, "__len__") or isinstance(first, str | bytes):
            break  # a plain list of labels or keys
        part = first
    shape = getattr(part, "shape", None)
    try:
        return int(shape[0]) if shape else len(part)
    except (TypeError, IndexError):
        raise DataError(
            "The first component of a batch must have one row a sample.",
            received=type(batch).__name__,
            advice="Batch the data with `BatchData`, or give arrays whose first axis counts the samples.",
        ) from None


def batch_keys(batch: Any) -> list[str]:
    """Return the keys of the samples where a batch carries them, else nothing.

    They are a component named ``key`` or ``keys`` of a dict, or an attribute ``keys`` that is no method.
    """
    keys: Any = None
    if isinstance(batch, Mapping):
        keys = next((batch[name] for name in _KEY_NAMES if name in batch), None)
    else:
        keys = getattr(batch, "keys", None)
    if keys is None or callable(keys):
        return []
    return [str(key) for key in (keys.tolist() if hasattr(keys, "tolist") else keys)]


def batch_arrays(batch: Any, prefix: str = "batch") -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name, array) of every component: ``batch/0``, ``batch/image``; what is no array becomes JSON text."""
    if isinstance(batch, Mapping):
        for name, part in batch.items():
            yield from batch_arrays(part, f"{prefix}/{name}")
        return
    if isinstance(batch, list | tuple) and any(hasattr(part, "shape") or isinstance(part, Mapping) for part in batch):
        for number, part in enumerate(batch):
            yield from batch_arrays(part, f"{prefix}/{number}")
        return
    yield prefix, plain_array(batch)


def plain_array(value: Any) -> np.ndarray:
    """Return a NumPy array that needs no pickle, also for a tensor on a device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value  # NumPy has no such dtype
    array = np.asarray(value) if hasattr(value, "shape") else _array_of_plain(value)
    return array if array.dtype != object else np.array(json.dumps(array.tolist(), default=str))


def _array_of_plain(value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.array(json.dumps(value, default=str))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz file that ``numpy.load(path)`` reads.

    ``numpy.savez`` would do, were it not for names such as ``file`` and ``allow_pickle``, which are its own arguments.

    Args:
        path: the file; its folder is made.
        arrays: name → array, of any dtype but object.

    Raises:
        StorageError: where the disk is full or not writable.
    """
    advice = "Free space on the disk or fix the folder's rights, then resume the job."
    with replaced_file(path, "Arrays", durable=False, advice=advice) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
