"""Network format of a datapoint: MessagePack for its structure, and the raw memory of its arrays.

It supports None, bool, int, float, str, bytes, list, tuple, dict, NumPy scalars, and arrays of any type except
objects, and restores the same types. Nothing is unpickled.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np

from ziggurat.errors import DataError

__all__ = ["Frames", "decode", "encode", "sign"]

Frames = Sequence[Any]
"""Bytes, or objects that give access to their memory."""

_TUPLE, _ARRAY, _INLINE_ARRAY, _SCALAR, _LONG = range(1, 6)
_INLINE_BYTES = 512


def encode(value: Any) -> list[Any]:
    """Return ``value`` as frames: its structure, then the memory of its large arrays, which is not copied.

    Raises:
        DataError: for a type that is not carried.
    """
    arrays: list[Any] = []

    def extend(each: Any) -> msgpack.ExtType:
        kind = type(each)
        if kind is tuple:
            return msgpack.ExtType(_TUPLE, pack(list(each)))
        if kind is int:
            return msgpack.ExtType(_LONG, str(each).encode())
        if isinstance(each, np.ndarray | np.generic) and not each.dtype.hasobject:
            descr: Any = np.lib.format.dtype_to_descr(each.dtype)
            if isinstance(each, np.generic):
                return msgpack.ExtType(_SCALAR, pack([descr, each.tobytes()]))
            if each.nbytes < _INLINE_BYTES:
                return msgpack.ExtType(_INLINE_ARRAY, pack([descr, list(each.shape), each.tobytes()]))
            flat: Any = np.ascontiguousarray(each).reshape(-1).view(np.uint8)
            arrays.append(memoryview(flat))
            return msgpack.ExtType(_ARRAY, pack([descr, list(each.shape), len(arrays) - 1]))
        raise DataError(
            "A datapoint goes to another machine as lists, tuples, dicts, numbers, text, bytes and arrays of these.",
            received=f"an array of objects, shape {each.shape}" if isinstance(each, np.ndarray) else kind.__name__,
            advice="Turn it into one of those in the sending flow.",
        )

    def pack(each: Any) -> bytes:
        return msgpack.Packer(default=extend, strict_types=True).pack(each)

    return [pack(value), *arrays]


def decode(frames: Frames) -> Any:
    """Return the value of ``encode()``; its large arrays are views of the frames' memory.

    Raises:
        DataError: where the frames are not of ``encode()``.
    """
    arrays = frames[1:]

    def extended(code: int, data: bytes) -> Any:
        if code == _TUPLE:
            return tuple(unpack(data))
        if code == _LONG:
            return int(data)
        descr, *rest = unpack(data)
        dtype = np.lib.format.descr_to_dtype(descr)
        if dtype.hasobject:
            raise ValueError("an array of objects")
        if code == _SCALAR:
            return np.frombuffer(rest[0], dtype)[0]
        if code == _ARRAY:
            return np.frombuffer(arrays[rest[1]], dtype).reshape(rest[0])
        if code == _INLINE_ARRAY:
            return np.frombuffer(bytearray(rest[1]), dtype).reshape(rest[0])
        raise ValueError(f"type {code}")

    def unpack(data: Any) -> Any:
        return msgpack.unpackb(data, ext_hook=extended, strict_map_key=False)

    try:
        return unpack(frames[0])
    except Exception as error:  # whatever foreign bytes lead to
        raise DataError(
            "A message from another machine must be a datapoint of this library.",
            received=f"{type(error).__name__}: {error}",
            advice="Let both sides run the same version, and keep strangers off the port (`key=…`).",
        ) from error


def sign(key: bytes, frames: Frames) -> bytes:
    """Return the signature of a message (HMAC with SHA-256, RFC 2104), which covers where each frame ends."""
    sizes = ",".join(str(memoryview(frame).nbytes) for frame in frames)
    signature = hmac.new(key, sizes.encode(), "sha256")
    for frame in frames:
        signature.update(frame)
    return signature.digest()
