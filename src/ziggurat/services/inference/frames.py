"""Sending of messages to a pooled process, with a deadline."""

from __future__ import annotations

import os
import select
import time
from typing import Any

from ziggurat.records.codec import pack
from ziggurat.records.frames import LENGTH

__all__ = ["send_frame"]


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
    for part in (LENGTH.pack(len(message)), message):
        _write(descriptor, memoryview(part), last)


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
