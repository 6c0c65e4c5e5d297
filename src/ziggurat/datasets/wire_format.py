"""Protocol-buffer wire format, and the third-party messages that are read and written with it.

A message is a sequence of fields; each is a key (``number << 3 | kind``) and a value. The messages are TensorFlow's
``Example`` (tensorflow/core/example/feature.proto) and Caffe's ``Datum`` and ``BlobProto`` (caffe.proto). A library
for them would be a heavy dependency for a handful of fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ziggurat.errors import DataError

__all__ = [
    "Datum",
    "Feature",
    "WireFormatError",
    "pack_blob",
    "pack_datum",
    "pack_features",
    "unpack_blob",
    "unpack_datum",
    "unpack_features",
]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_INT64_SIGN: Final = 1 << 63
_MAX_VARINT_BYTES: Final = 10

Feature = list[bytes] | list[int] | list[float]
"""The values of one feature of an ``Example``: all bytes, all int64, or all float32."""


class WireFormatError(DataError):
    """Bytes are no message of the kind that they should be, or were cut off."""

    code = "wire_format"


# ---- TensorFlow's Example


def unpack_features(message: bytes) -> dict[str, Feature]:
    """Return the features of a serialized ``Example``.

    Raises:
        WireFormatError: where it is none.
    """
    features: dict[str, Feature] = {}
    for number, content in _fields(message):
        if number != 1 or not isinstance(content, memoryview):
            continue
        for _number, entry in _fields(content):
            name, value = b"", memoryview(b"")
            for field, part in _fields(_message(entry)):
                if field == 1:
                    name = bytes(_message(part))
                elif field == 2:
                    value = _message(part)
            features[name.decode("utf-8", "replace")] = _feature(value)
    return features


def pack_features(features: Mapping[str, Feature]) -> bytes:
    """Return a serialized ``Example``; its features are in the order of their names, as TensorFlow sorts them."""
    entries = b""
    for name in sorted(features):
        entries += _bytes(1, _bytes(1, name.encode()) + _bytes(2, _packed_feature(features[name])))
    return _bytes(1, entries)


def _feature(value: memoryview) -> Feature:
    """Return the values of a ``Feature``: one of a list of bytes, of floats, or of integers."""
    for number, content in _fields(value):
        inside = _message(content)
        if number == 1:
            return [bytes(_message(part)) for _, part in _fields(inside)]
        if number == 2:
            return _numbers(inside, 1, "<f4").tolist()
        if number == 3:
            return _integers(inside)
    return []


def _packed_feature(values: Feature) -> bytes:
    if values and isinstance(values[0], bytes):
        return _bytes(1, b"".join(_bytes(1, value) for value in values if isinstance(value, bytes)))
    if values and isinstance(values[0], float):
        return _bytes(2, _bytes(1, np.asarray(values, "<f4").tobytes()))
    return _bytes(3, _bytes(1, b"".join(_varint(int(value) & 0xFFFFFFFFFFFFFFFF) for value in values)))


def _integers(inside: memoryview) -> list[int]:
    found: list[int] = []
    for _number, content in _fields(inside):
        if isinstance(content, int):
            found.append(_signed(content))
            continue
        packed, place = _message(content), 0
        while place < len(packed):
            value, place = _read_varint(packed, place)
            found.append(_signed(value))
    return found


def _signed(value: int) -> int:
    return value - (1 << 64) if value & _INT64_SIGN else value


# ---- Caffe's Datum and BlobProto


@dataclass(frozen=True, kw_only=True)
class Datum:
    """One record of Caffe.

    Args:
        data: an encoded image, or (channels, height, width) uint8; empty where the values are floats.
        values: the floats, (channels, height, width) float32; empty where there are bytes.
        channels: of the array; 0 if not given.
        height_px: of the array; 0 if not given.
        width_px: of the array; 0 if not given.
        label: number of the class; 0 if not given.
        encoded: whether ``data`` is an encoded image.
    """

    data: bytes = b""
    values: np.ndarray | None = None
    channels: int = 0
    height_px: int = 0
    width_px: int = 0
    label: int = 0
    encoded: bool = False

    def array(self) -> np.ndarray:
        """Return the values as they are stored: (channels, height, width) uint8 or float32.

        Raises:
            WireFormatError: where there are more or fewer values than the shape says, or none at all.
        """
        flat = np.frombuffer(self.data, np.uint8) if self.data else self.values
        shape = (self.channels, self.height_px, self.width_px)
        if self.encoded or flat is None or not flat.size or flat.size != shape[0] * shape[1] * shape[2]:
            held = "an encoded image" if self.encoded else f"{0 if flat is None else flat.size} values"
            raise WireFormatError("A Datum of Caffe has as many values as its shape says.", received=f"{held}, {shape}")
        return flat.reshape(shape)


def unpack_datum(message: bytes | memoryview) -> Datum:
    """Return the record in a serialized ``Datum``.

    Raises:
        WireFormatError: where it is none.
    """
    numbers: dict[int, int] = {}
    data = b""
    for number, content in _fields(message):
        if isinstance(content, int):
            numbers[number] = content
        elif number == 4:
            data = bytes(content)
    return Datum(
        data=data,
        values=None if data else _numbers(message, 6, "<f4"),
        channels=numbers.get(1, 0),
        height_px=numbers.get(2, 0),
        width_px=numbers.get(3, 0),
        label=_signed(numbers.get(5, 0)),
        encoded=bool(numbers.get(7, 0)),
    )


def pack_datum(datum: Datum) -> bytes:
    """Return a serialized ``Datum``."""
    head = _integer(1, datum.channels) + _integer(2, datum.height_px) + _integer(3, datum.width_px)
    if datum.values is None:
        return head + _bytes(4, datum.data) + _integer(5, datum.label) + _integer(7, int(datum.encoded))
    # Old Caffe declares the floats without packing; every reader of the format takes both forms.
    floats = np.ascontiguousarray(datum.values, "<f4").reshape(-1)
    keyed = np.empty(len(floats), np.dtype([("key", "u1"), ("value", "<f4")]))
    keyed["key"], keyed["value"] = 6 << 3 | _FIXED32, floats
    return head + _integer(5, datum.label) + keyed.tobytes()


def unpack_blob(message: bytes) -> np.ndarray:
    """Return the array in a serialized ``BlobProto``, float32: (N, C, H, W), or the shape that newer files name.

    Raises:
        WireFormatError: where it is none.
    """
    sizes = {1: 1, 2: 1, 3: 1, 4: 1}
    shape: list[int] = []
    for number, content in _fields(message):
        if number in sizes and isinstance(content, int):
            sizes[number] = content
        elif number == 7:
            shape = _integers(_message(content))
    values = _numbers(message, 5, "<f4")
    try:
        return values.reshape(shape or list(sizes.values()))
    except ValueError:
        raise WireFormatError(
            "A BlobProto of Caffe has as many values as its shape says.",
            received=f"{values.size} values, {tuple(shape or sizes.values())}",
        ) from None


def pack_blob(values: np.ndarray) -> bytes:
    """Return a serialized ``BlobProto`` of an array (N, C, H, W) float32."""
    head = b"".join(_integer(number, size) for number, size in enumerate(values.shape, start=1))
    return head + _bytes(5, np.ascontiguousarray(values, "<f4").tobytes())


# ---- the wire


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field: an integer, or the bytes of everything else."""
    view = memoryview(message)
    place = 0
    while place < len(view):
        key, place = _read_varint(view, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _read_varint(view, place)
            yield number, value
            continue
        if kind == _BYTES:
            length, place = _read_varint(view, place)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise _bad(f"a field of the kind {kind}")
        if length > len(view) - place:
            raise _bad(f"a field of {length} bytes where {len(view) - place} are left")
        yield number, view[place : place + length]
        place += length


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    for byte in view[place : place + _MAX_VARINT_BYTES]:
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise _bad("an integer without an end")


def _numbers(message: bytes | memoryview, wanted: int, dtype: str) -> np.ndarray:
    """Return the values of a repeated field of fixed size, which stand in one field, or each in one of its own."""
    parts = [part for number, part in _fields(message) if number == wanted and isinstance(part, memoryview)]
    data = b"".join(parts)
    if len(data) % np.dtype(dtype).itemsize:
        raise _bad(f"{len(data)} bytes of numbers")
    return np.frombuffer(data, dtype)


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _bad("an integer where a message should be")
    return value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value & 0xFFFFFFFFFFFFFFFF)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _bad(received: str) -> WireFormatError:
    return WireFormatError("A message of protocol buffers is a row of whole fields.", received=received)
