"""Protocol-buffer wire format: the fields of a message, read and written, and the TFRecord frame around a message.

A message is a sequence of fields; each is a key (``number << 3 | kind``) and a value. A library for it would be a heavy
dependency for a handful of messages, and seconds at the start of every job.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import google_crc32c

from ziggurat.errors import DataError

__all__ = [
    "FIXED32",
    "WireFormatError",
    "as_message",
    "bytes_field",
    "double_field",
    "field_key",
    "fields",
    "fixed_size_values",
    "float_field",
    "integer_field",
    "integers",
    "masked_crc32c",
    "signed",
    "tfrecord_frame",
    "varint",
]

FIXED32: Final = 5
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_INT64_SIGN: Final = 1 << 63
_UINT64: Final = (1 << 64) - 1
_MAX_VARINT_BYTES: Final = 10
_CHECKSUM: Final = struct.Struct("<I")


class WireFormatError(DataError):
    """Bytes are no message of the kind that they should be, or were cut off."""

    code = "wire_format"


def fields(message: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field: an integer, or the bytes of everything else.

    Raises:
        WireFormatError: where a field is cut off or of an unknown kind.
    """
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
        elif kind in (FIXED32, _FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise _bad(f"a field of the kind {kind}")
        if length > len(view) - place:
            raise _bad(f"a field of {length} bytes where {len(view) - place} are left")
        yield number, view[place : place + length]
        place += length


def as_message(value: int | memoryview) -> memoryview:
    """Return the value of a field that holds a message.

    Raises:
        WireFormatError: where it is an integer.
    """
    if isinstance(value, int):
        raise _bad("an integer where a message should be")
    return value


def integers(message: memoryview) -> list[int]:
    """Return all integers of a message, signed, whether they are packed into one field or have a field each."""
    found: list[int] = []
    for _number, content in fields(message):
        if isinstance(content, int):
            found.append(signed(content))
            continue
        place = 0
        while place < len(content):
            value, place = _read_varint(content, place)
            found.append(signed(value))
    return found


def signed(value: int) -> int:
    """Return an int64 from the unsigned form in which a message holds it."""
    return value - (1 << 64) if value & _INT64_SIGN else value


def fixed_size_values(message: bytes | memoryview, wanted: int, size_bytes: int) -> bytes:
    """Return the values of a repeated field of fixed size, which are packed into one field or have a field each."""
    data = b"".join(part for number, part in fields(message) if number == wanted and isinstance(part, memoryview))
    if len(data) % size_bytes:
        raise _bad(f"{len(data)} bytes of numbers")
    return data


def field_key(number: int, kind: int) -> bytes:
    """Return the key of a field."""
    return varint(number << 3 | kind)


def integer_field(number: int, value: int) -> bytes:
    """Return a field with an integer; a negative one takes ten bytes."""
    return field_key(number, _VARINT) + varint(value & _UINT64)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with bytes, a text or a message."""
    return field_key(number, _BYTES) + varint(len(value)) + value


def double_field(number: int, value: float) -> bytes:
    """Return a field with a number of 64 bits."""
    return field_key(number, _FIXED64) + struct.pack("<d", value)


def float_field(number: int, value: float) -> bytes:
    """Return a field with a number of 32 bits; one that is too large for them becomes infinite."""
    try:
        content = struct.pack("<f", value)
    except OverflowError:
        content = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return field_key(number, FIXED32) + content


def varint(value: int) -> bytes:
    """Return an unsigned integer, 7 bits a byte, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def tfrecord_frame(message: bytes) -> bytes:
    """Return a message as a TFRecord: length and content, each with a masked CRC-32C behind it."""
    length = struct.pack("<Q", len(message))
    return b"".join((length, _CHECKSUM.pack(masked_crc32c(length)), message, _CHECKSUM.pack(masked_crc32c(message))))


def masked_crc32c(data: bytes) -> int:
    """Return a CRC-32C as TFRecord files hold it: turned and shifted, so that a checksum of a checksum differs."""
    checksum: Any = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    for byte in view[place : place + _MAX_VARINT_BYTES]:
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise _bad("an integer without an end")


def _bad(received: str) -> WireFormatError:
    return WireFormatError("A message of protocol buffers is a row of whole fields.", received=received)
