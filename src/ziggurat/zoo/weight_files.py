"""Files of pretrained weights in the format safetensors: checked before anything of them is used."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, safe_open

from ziggurat.errors import CheckpointError

__all__ = ["WeightsContent", "check_weights_file", "file_sha256", "load_weights_file"]

_HEADER_BYTES: Final = 16 << 20
"""Largest header: that of a network with 10,000 arrays has 1 MB."""

_MOST_ARRAYS: Final = 50_000
_LONGEST_NAME: Final = 300
_TYPES: Final = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")
_ADVICE: Final = "Download the file again, or write it with `safetensors`."


@dataclass(frozen=True)
class WeightsContent:
    """What is in a file of weights.

    Args:
        shapes: name → shape of each array.
        parameters: numbers in all arrays.
    """

    shapes: Mapping[str, tuple[int, ...]]
    parameters: int


def check_weights_file(path: Path) -> WeightsContent:
    """Return what is in a file of weights; its arrays are not read.

    Raises:
        CheckpointError: if it is not a whole file of the format, or has names or types that weights do not have.
    """
    header = _header(path)
    try:
        with safe_open(path, framework="np") as file:  # compares the places of all arrays with the size of the file
            names = list(file.keys())
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise _damaged(path, str(error)) from None
    if not names or len(names) > _MOST_ARRAYS:
        raise _damaged(path, f"{len(names)} arrays; from 1 to {_MOST_ARRAYS:,} are expected")
    for name in names:
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
            raise _damaged(path, f"an array named {name[:50]!r}")
        if header[name]["dtype"] not in _TYPES:
            raise CheckpointError(
                f"`{name}` in `{path.name}` is of the type {header[name]['dtype']}, which NumPy does not "
                "know and which is not bfloat16.",
                advice=f"Write them again with one of the types {', '.join(_TYPES)}.",
            )
    shapes = {name: tuple(header[name]["shape"]) for name in names}
    return WeightsContent(shapes, sum(math.prod(shape) for shape in shapes.values()))


def load_weights_file(path: Path) -> dict[str, np.ndarray]:
    """Return name → array of a file of weights; numbers in half or double precision become float32.

    Raises:
        CheckpointError: as ``check_weights_file``.
    """
    header = _header(path)
    check_weights_file(path)
    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys() if header[name]["dtype"] != "BF16"}  # noqa: SIM118
    arrays |= _bfloat16_arrays(path, header)
    return {name: _as_float32(arrays[name]) for name in header}


def file_sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _header(path: Path) -> dict[str, Any]:
    """Return name → type, shape and place of each array."""
    try:
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            first = file.read(8)
            length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
            if not 2 <= length <= min(_HEADER_BYTES, size_bytes - 8):
                raise _damaged(path, f"{size_bytes:,} bytes, of which the first 8 announce a header of {length:,}")
            content = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"a header that is no JSON: {error}") from None
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from None
    if not isinstance(content, dict):
        raise _damaged(path, "a header that is no JSON object")
    content.pop("__metadata__", None)
    return content


def _bfloat16_arrays(path: Path, header: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays in bfloat16 as float32, of which they are the upper half; NumPy has no such type."""
    wanted = {name: part for name, part in header.items() if part["dtype"] == "BF16"}
    found = {}
    with path.open("rb") as file:
        begin = 8 + struct.unpack("<Q", file.read(8))[0]
        for name, part in wanted.items():
            first, last = part["data_offsets"]
            file.seek(begin + first)
            upper = np.frombuffer(file.read(last - first), "<u2").astype(np.uint32)
            found[name] = (upper << 16).view(np.float32).reshape(part["shape"])
    return found


def _as_float32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _damaged(path: Path, received: str) -> CheckpointError:
    return CheckpointError(
        f"`{path.name}` is damaged, or is no file in the format safetensors: {received}.", advice=_ADVICE
    )
