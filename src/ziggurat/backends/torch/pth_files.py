"""Weights in files of PyTorch (``.pth``, ``.pt``), converted to safetensors without running any code of them."""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.numpy import save_file

from ziggurat.errors import CheckpointError

__all__ = ["convert_pth", "read_pth"]

_INNER: Final = ("state_dict", "model_state_dict", "model", "state_dict_ema", "model_ema", "ema", "net")
"""Under one of these, training programs save the weights beside epoch, optimizer and the like."""

_WRAPPERS: Final = ("module.", "_orig_mod.")
"""``DataParallel`` and ``torch.compile`` put one before every name."""

_HEAD_BYTES: Final = 512
_NO_TEXT: Final = frozenset({*range(9), *range(14, 32)} - {27})
"""Bytes that are in every pickle and archive, and in no text."""


def convert_pth(source: Path, target: Path, *, rename: Callable[[str], str] = str) -> int:
    """Write the weights in a file of PyTorch as safetensors; return the number of arrays.

    Args:
        source: written by ``torch.save``.
        target: is replaced.
        rename: returns the name in the new file for one of the old file.

    Raises:
        CheckpointError: as ``read_pth``.
    """
    arrays = {rename(name): array for name, array in read_pth(source).items()}
    save_file(arrays, target)
    return len(arrays)


def read_pth(path: Path) -> dict[str, np.ndarray]:
    """Return name → array of the state dict in a file; bfloat16 becomes float32.

    Only tensors and plain values are read (``weights_only``): a file with objects of other classes could run code.

    Raises:
        CheckpointError: if there is no state dict in it, or more than plain values.
    """
    _check_size(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"`{path.name}` is not a file of plain PyTorch weights{_unwanted(error)}.",
            advice="Save it again with `torch.save(model.state_dict(), path)`.",
        ) from None
    except (RuntimeError, OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise _damaged(path, _first_line(error)) from None
    tensors = _without_wrapper(_state_dict(content, path))
    size_bytes = sum(each.numel() * each.itemsize for each in tensors.values())
    if size_bytes > 4 * path.stat().st_size + (1 << 20):  # views that repeat a few numbers
        raise _damaged(path, f"its tensors would be {size_bytes:,} bytes")
    return {name: _array(tensor, name) for name, tensor in tensors.items()}


def _check_size(path: Path) -> None:
    """Refuse a text, and a file that is larger unpacked: ``torch.save`` compresses nothing."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head and not set(head) & _NO_TEXT:
            raise _damaged(path, "a text")
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(each.file_size for each in archive.infolist())
            if unpacked > 2 * path.stat().st_size + (1 << 20):
                raise _damaged(path, f"it would be {unpacked:,} bytes unpacked")
    except (OSError, zipfile.BadZipFile) as error:
        raise _damaged(path, str(error)) from None


def _state_dict(content: Any, path: Path) -> Mapping[str, torch.Tensor]:
    """Return name → tensor of what was loaded: the whole, or the part of a training's checkpoint with the weights."""
    candidates = [content]
    if isinstance(content, Mapping):
        candidates += [content[name] for name in _INNER if name in content]
    for each in candidates:
        if isinstance(each, Mapping) and each and all(isinstance(name, str) for name in each):
            tensors = {name: value for name, value in each.items() if isinstance(value, torch.Tensor)}
            if len(tensors) == len(each):
                return tensors
    keys = ", ".join(map(repr, list(content)[:5])) if isinstance(content, Mapping) else ""
    raise CheckpointError(
        "A file of PyTorch weights has a state dict: name → tensor.",
        received=f"`{path.name}`: {f'keys {keys}' if keys else type(content).__name__}"[:300],
        advice="Save it with `torch.save(model.state_dict(), path)`.",
    )


def _without_wrapper(tensors: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    for wrapper in _WRAPPERS:
        if all(name.startswith(wrapper) for name in tensors):
            return {name.removeprefix(wrapper): tensor for name, tensor in tensors.items()}
    return tensors


def _array(tensor: torch.Tensor, name: str) -> np.ndarray:
    plain = tensor.detach().to("cpu")
    try:
        # Not `ascontiguousarray`, which gives counters of batch norms an axis.
        return np.asarray((plain.float() if plain.dtype == torch.bfloat16 else plain).numpy(), order="C")
    except (TypeError, RuntimeError) as error:  # quantized, sparse, float8
        raise CheckpointError(
            f"The tensor `{name}` cannot be used: {plain.dtype}, {_first_line(error).rstrip('.')}.",
            advice="Save the model again in float32.",
        ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _unwanted(error: BaseException) -> str:
    """Return which object PyTorch refused; its own message advises to read the file without protection."""
    named = re.search(r"GLOBAL (\S+)", str(error))
    return f" with an object of `{named[1]}`"[:200] if named else ", which has other objects or is damaged"


def _damaged(path: Path, received: str) -> CheckpointError:
    return CheckpointError(
        f"`{path.name}` is damaged, or is no file that `torch.save` wrote: {received.rstrip('.')}.",
        advice="Download it again.",
    )
