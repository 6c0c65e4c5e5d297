"""Messages over a pipe: a length (uint64, little-endian) and a packed value each, never a pickle."""

from __future__ import annotations

import struct
from typing import IO, Any, Final

from ziggurat.records.codec import DecodingError, pack_parts, unpack

__all__ = ["LENGTH", "MAX_BYTES", "read_frame", "write_frame"]

MAX_BYTES: Final = 1 << 30
"""A longer message is a mistake: nothing of it is read."""

LENGTH: Final = struct.Struct("<Q")
"""Form of the length before each message."""


def read_frame(source: IO[bytes]) -> Any:
    """Return the next value; None at the end, also where that comes in the middle of a message.

    Raises:
        DecodingError: where it is too long, or no packed value.
    """
    header = source.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    if length > MAX_BYTES:
        raise DecodingError(f"A message has at most {MAX_BYTES} bytes.", received=length)
    content = source.read(length)
    return unpack(content) if len(content) == length else None


def write_frame(target: IO[bytes], value: Any) -> None:
    """Write a value and flush.

    Raises:
        EncodingError: where it is no plain value; nothing is written then.
    """
    parts = [memoryview(part).cast("B") for part in pack_parts(value)]
    target.write(LENGTH.pack(sum(part.nbytes for part in parts)))
    for part in parts:
        target.write(part)
    target.flush()
