"""Decoder of the codec: from a MessagePack header and raw buffers to a value, or a clear error."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgpack
import numpy as np

from ziggurat.errors import DataError
from ziggurat.records.packing import ALIGN_BYTES, ARRAY, BIG_INTEGER, BLOB, SCALAR, TUPLE

__all__ = ["DecodingError", "damaged", "unpack_header"]


class DecodingError(DataError, ValueError):
    """Bytes are no packed value: garbage, cut off, or changed on the way."""

    code = "decoding"


def unpack_header(header: bytes, view: memoryview, header_start: int, copy: bool) -> Any:
    """Return the value whose header is given; its buffers follow the header in ``view``.

    Raises:
        DecodingError: where header and buffers do not fit.
    """
    reader = _TreeReader(view, header_start + len(header), copy)
    try:
        value = reader.read(header)
    except DecodingError:
        raise
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise damaged(f"a header that cannot be read ({error})") from error
    if reader.position != view.nbytes:
        raise damaged(f"{view.nbytes - reader.position} bytes that the header does not name")
    return value


def damaged(received: str) -> DecodingError:
    """Return the error for a message that is not as it was written."""
    return DecodingError(
        "A packed value is read as it was written.",
        received=received,
        advice="The data is damaged or cut off, or was not written by `ziggurat.records.codec.pack`.",
    )


class _TreeReader:
    """Reads a header, and takes the buffers in the order in which the header names them."""

    def __init__(self, view: memoryview, position: int, copy: bool) -> None:
        self.view = view
        self.position = position
        self.copy = copy

    def read(self, packed: bytes) -> Any:
        return msgpack.unpackb(packed, ext_hook=self._extension, strict_map_key=False)

    def _extension(self, code: int, data: bytes) -> Any:
        if code == ARRAY:
            return self._array(data)
        if code == TUPLE:
            return tuple(self.read(data))
        if code == SCALAR:
            return _scalar(data)
        if code == BLOB:
            return bytes(self._take(int.from_bytes(data, "little")))
        if code == BIG_INTEGER:
            return int.from_bytes(data, "little", signed=True)
        raise damaged(f"an extension of unknown kind {code}")

    def _array(self, data: bytes) -> np.ndarray:
        dtype, shape, size_bytes = _array_layout(data)
        content = self._take(size_bytes)
        if size_bytes == 0:
            return np.empty(shape, dtype)
        array = np.frombuffer(content, dtype).reshape(shape)
        return array.copy() if self.copy else array

    def _take(self, size_bytes: int) -> memoryview:
        start = self.position + -self.position % ALIGN_BYTES
        self.position = start + size_bytes
        if self.position > self.view.nbytes:
            raise damaged("a buffer that ends after the message")
        return self.view[start : self.position]


@lru_cache(maxsize=1024)
def _array_layout(data: bytes) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    dtype, shape = _dtype_and_shape(msgpack.unpackb(data, use_list=False))
    count = 1
    for length in shape:  # Python's integers: no overflow
        count *= length
    return dtype, shape, count * dtype.itemsize


def _dtype_and_shape(pair: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    descriptor, shape = pair
    dtype = np.lib.format.descr_to_dtype(_fields(descriptor))
    if dtype.hasobject or not all(type(length) is int and length >= 0 for length in shape):
        raise damaged(f"an array of dtype {dtype} and shape {shape}")
    return dtype, shape


def _fields(descriptor: Any) -> Any:
    """Return a dtype's descriptor with lists where MessagePack gave tuples: lists are what NumPy tells fields by."""
    if isinstance(descriptor, str):
        return descriptor
    return [(name, _fields(kind), *shape) for name, kind, *shape in descriptor]


def _scalar(data: bytes) -> Any:
    unpacker = msgpack.Unpacker(use_list=False)
    unpacker.feed(data)
    dtype, _shape = _dtype_and_shape(unpacker.unpack())
    content = data[unpacker.tell() :]
    if len(content) != dtype.itemsize:
        raise damaged("a scalar of the wrong size")
    return np.frombuffer(content, dtype)[0] if content else np.zeros((), dtype)[()]
