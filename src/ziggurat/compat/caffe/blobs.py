"""Weights of Caffe: the arrays in a ``.caffemodel``, and the mean image in a ``.binaryproto``.

Only what an import needs is read: names of layers, in the present form and both old ones (V1 and V0), and their arrays,
in shapes of today or of four old axes, as float or double.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.protobuf_wire import WireFormatError, as_message, fields, fixed_size_values, integers, signed

__all__ = ["read_caffemodel", "read_mean"]

_MOST_BYTES: Final = 4 << 30
_MOST_LAYERS: Final = 20_000
_MOST_BLOBS: Final = 64
_MOST_AXES: Final = 32
_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_LAYER, _OLD_LAYER = 100, 2
_BLOB_SHAPE, _BLOB_FLOATS, _BLOB_DOUBLES = 7, 5, 8


def read_caffemodel(path: Path) -> dict[str, list[np.ndarray]]:
    """Return layer → arrays, float32, for each layer that has any.

    Raises:
        CaffeError: if the file is cut off, damaged, or of another kind.
    """
    content = _content(path)
    if content[:8] == _HDF5:
        raise CaffeError(
            f"`{path.name}` is an HDF5 file, not a `.caffemodel` in the binary format of protocol buffers.",
            advice="Save it with `snapshot_format: BINARYPROTO`.",
        )
    found: dict[str, list[np.ndarray]] = {}
    count = 0
    try:
        for number, value in fields(content):
            if number not in (_LAYER, _OLD_LAYER):
                continue
            count += 1
            if count > _MOST_LAYERS:
                raise CaffeError(f"`{path.name}` has more than {_MOST_LAYERS:,} layers, the most that are read.")
            name, blobs = _layer(as_message(value), number == _OLD_LAYER)
            if blobs:
                found[name] = blobs
    except WireFormatError as error:
        raise _damaged(path, (error.received or error.rule).rstrip(".")) from None
    if not found:
        raise _damaged(path, f"{count} layers, none with weights")
    return found


def read_mean(path: Path) -> np.ndarray:
    """Return the mean image in a ``.binaryproto``: (C, H, W) float32, BGR, or (C, 1, 1) for a mean of colors.

    Raises:
        CaffeError: if the file is cut off, damaged, or of another kind.
    """
    try:
        mean = _blob(memoryview(_content(path)))
    except WireFormatError as error:
        raise _damaged(path, (error.received or error.rule).rstrip(".")) from None
    while mean.ndim > 3 and mean.shape[0] == 1:
        mean = mean[0]
    if mean.ndim != 3 or not mean.size or not np.isfinite(mean).all():
        raise _damaged(path, f"a mean of shape {mean.shape}")
    return mean


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise CaffeError(f"`{path.name}` has {size:,} bytes; files of Caffe are read up to 4 GiB.")
        return path.read_bytes()
    except OSError as error:
        raise CaffeError("The file must be readable.", received=f"`{path}`: {error.strerror}") from None


def _layer(message: memoryview, is_old: bool) -> tuple[str, list[np.ndarray]]:
    """Return name and arrays of a layer."""
    name_number, blob_number = (4, 6) if is_old else (1, 7)
    name, blobs = "", []
    for number, value in fields(message):
        if number == name_number:
            name = bytes(as_message(value)).decode("utf-8", "replace")
        elif number == blob_number:
            blobs.append(as_message(value))
        elif is_old and number == 1:  # the oldest form: the layer lies inside
            for inner, content in fields(as_message(value)):
                if inner == 1:
                    name = bytes(as_message(content)).decode("utf-8", "replace")
                elif inner == 50:
                    blobs.append(as_message(content))
        if len(blobs) > _MOST_BLOBS:
            raise CaffeError(f"The layer `{name[:60]}` has more than {_MOST_BLOBS} arrays, the most that are read.")
    return name, [_blob(each) for each in blobs]


def _blob(message: memoryview) -> np.ndarray:
    shape: list[int] | None = None
    old = [0, 0, 0, 0]
    for number, value in fields(message):
        if number == _BLOB_SHAPE:
            shape = integers(as_message(value))
        elif number in (1, 2, 3, 4) and isinstance(value, int):
            old[number - 1] = signed(value)
    data = np.frombuffer(fixed_size_values(message, _BLOB_FLOATS, 4), "<f4")
    doubles = fixed_size_values(message, _BLOB_DOUBLES, 8)
    if doubles:
        with np.errstate(over="ignore"):
            data = np.frombuffer(doubles, "<f8").astype(np.float32)
    axes = old if shape is None else shape
    if shape is None and not any(old):
        axes = [data.size]
    if len(axes) > _MOST_AXES or any(axis < 0 for axis in axes) or math.prod(axes) != data.size:
        raise WireFormatError(f"An array has {data.size:,} numbers, which do not fit its shape {tuple(axes[:8])}.")
    return data.reshape(axes)


def _damaged(path: Path, received: str) -> CaffeError:
    return CaffeError(
        f"`{path.name}` is damaged, or not in the binary format of protocol buffers: {received}.",
        advice="Copy it again; weights end in `.caffemodel`, a mean in `.binaryproto`.",
    )
