"""Owns the studio's side of messages with a warm process: a length (uint64, little-endian) and a packed value each."""

from __future__ import annotations

import os
import select
import struct
import time
from typing import IO, Any, Final

from ziggurat.records.codec import DecodingError, pack, unpack

__all__ = ["MAX_BYTES", "read_frame", "send_frame"]

MAX_BYTES: Final = 1 << 30
"""A longer message is a mistake: nothing of it is read."""

_LENGTH: Final = struct.Struct("<Q")


def send_frame(descriptor: int, value: Any, last: float) -> None:
    """Write a value to a pipe that does not block.

    Args:
        descriptor: of the pipe.
        value: plain data.
        last: when to give up, by ``time.monotonic()``.

    Raises:
        TimeoutError: where nobody reads for so long; part of the message may have been written.
        OSError: where the reader is gone.
        EncodingError: where the value is not plain.
    """
    message = pack(value)
    for part in (_LENGTH.pack(len(message)), message):
        _write(descriptor, memoryview(part), last)


def read_frame(source: IO[bytes]) -> Any:
    """Return the next value; None at the end, also where that comes in the middle of a message.

    Raises:
        DecodingError: where it is too long, or no packed value.
    """
    header = source.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    if length > MAX_BYTES:
        raise DecodingError(f"A message has at most {MAX_BYTES} bytes.", received=length)
    content = source.read(length)
    return unpack(content) if len(content) == length else None


def _write(descriptor: int, left: memoryview, last: float) -> None:
    writable = select.poll()
    writable.register(descriptor, select.POLLOUT)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            left_ms = (last - time.monotonic()) * 1000
            if left_ms <= 0 or not writable.poll(left_ms):
                raise TimeoutError from None
