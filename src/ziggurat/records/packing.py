"""Encoder of the codec: from a value to a MessagePack header and a list of raw buffers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgpack
import numpy as np

from ziggurat.errors import DataError

__all__ = ["ALIGN_BYTES", "ARRAY", "BIG_INTEGER", "BLOB", "SCALAR", "TUPLE", "EncodingError", "pack_header"]

ALIGN_BYTES = 64
ARRAY, SCALAR, TUPLE, BIG_INTEGER, BLOB = 1, 2, 3, 4, 5
"""Codes of the header's extensions."""
_LARGE_BYTES = 4096


class EncodingError(DataError, TypeError):
    """A value holds something that is no plain data, such as an object of a class."""

    code = "encoding"


class _ForeignError(Exception):
    """Something that cannot be packed, before anybody knows where it stands."""


class _Blob:
    """A large ``bytes`` that travels as a buffer of its own."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


def pack_header(value: Any) -> tuple[bytes, list[memoryview]]:
    """Return the header of ``value`` and the buffers that belong behind it, in order.

    Raises:
        EncodingError: where a part of ``value`` is no plain data.
    """
    buffers: list[memoryview] = []
    try:
        return _header(value, buffers), buffers
    except _ForeignError as error:
        received, advice = error.args
        raise EncodingError(
            "A record holds plain data only: None, bool, int, float, str, bytes, NumPy arrays and scalars of numbers, "
            "text and bytes, and lists, tuples and dicts of them.",
            received=f"{received}, at `value{_place(value)}`",
            advice=advice,
        ) from None


def _header(value: Any, buffers: list[memoryview]) -> bytes:
    try:
        return _pack_tree(_with_blobs(value, deep=False), buffers)
    except (ValueError, RecursionError):  # `bytes` of 4 GiB and more inside nested containers, or nesting without end
        buffers.clear()
    try:
        return _pack_tree(_with_blobs(value, deep=True), buffers)
    except (ValueError, RecursionError) as error:
        raise EncodingError(
            "A record is nested at most 500 levels deep, and no container holds itself.", received=str(error)
        ) from None


def _with_blobs(value: Any, *, deep: bool) -> Any:
    """Put large ``bytes`` aside: those directly in a datapoint, which is cheap to look at, or everywhere."""
    kind = type(value)
    inner = (lambda item: _with_blobs(item, deep=True)) if deep else _one_blob
    if kind is list:
        return [inner(item) for item in value]
    if kind is tuple:
        return tuple(inner(item) for item in value)
    if kind is dict:
        return {key: inner(item) for key, item in value.items()}
    return _one_blob(value)


def _one_blob(value: Any) -> Any:
    return _Blob(value) if type(value) is bytes and len(value) > _LARGE_BYTES else value


def _pack_tree(value: Any, buffers: list[memoryview]) -> bytes:
    def replace(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            header = _array_header(type(item), item.dtype, item.shape)
            content: Any = np.ascontiguousarray(item).reshape(-1).view(np.uint8) if item.nbytes else b""
            buffers.append(memoryview(content))
            return msgpack.ExtType(ARRAY, header)
        if isinstance(item, np.generic):
            return msgpack.ExtType(SCALAR, _array_header(np.ndarray, item.dtype, ()) + item.tobytes())
        if isinstance(item, tuple):
            return msgpack.ExtType(TUPLE, _packb(list(item), replace, buffers))
        if isinstance(item, _Blob):
            buffers.append(memoryview(item.data))
            return msgpack.ExtType(BLOB, len(item.data).to_bytes(8, "little"))
        return _plain(item)

    return _packb(value, replace, buffers)


def _packb(value: Any, replace: Any, buffers: list[memoryview]) -> bytes:
    already = len(buffers)
    packb: Any = msgpack.packb
    try:
        return packb(value, default=replace, strict_types=True)
    except OverflowError:  # an integer beyond 64 bits, which MessagePack does not offer to `default`
        del buffers[already:]
        return packb(_with_big_integers(value), default=replace, strict_types=True)


def _with_big_integers(value: Any) -> Any:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return msgpack.ExtType(BIG_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if isinstance(value, tuple):
        return tuple(_with_big_integers(item) for item in value)
    if isinstance(value, list):
        return [_with_big_integers(item) for item in value]
    if isinstance(value, dict):
        return {_with_big_integers(key): _with_big_integers(item) for key, item in value.items()}
    return value


def _plain(item: Any) -> Any:
    """Return the plain base of a subclass, for MessagePack to write."""
    bases: tuple[Any, ...] = (dict, list, str, bytes, int, float)
    for base in bases:
        if isinstance(item, base):
            return base(item)
    kind = f"an object of type `{type(item).__module__}.{type(item).__qualname__}`"
    raise _ForeignError(kind, "Turn it into plain data first, for example with MapData.")


@lru_cache(maxsize=1024)
def _array_header(kind: type, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    if issubclass(kind, np.ma.MaskedArray):
        raise _ForeignError("a masked array", "Pack its `.data` and its `.mask`.")
    descriptor: Any = None if dtype.hasobject else np.lib.format.dtype_to_descr(dtype)
    if descriptor is None or np.lib.format.descr_to_dtype(descriptor) != dtype:
        advice = "Use lists for objects, and a view such as `.view(numpy.uint16)` for a dtype that NumPy itself lacks."
        raise _ForeignError(f"an array of dtype `{dtype}`", advice)
    packb: Any = msgpack.packb
    return packb((descriptor, shape))


def _place(value: Any) -> str:
    """Return where in ``value`` the first thing stands that cannot be packed, as subscripts."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return ""
    for key, item in items:
        try:
            _header(item, [])
        except _ForeignError:
            return f"[{key!r}]{_place(item)}"
    return ""
