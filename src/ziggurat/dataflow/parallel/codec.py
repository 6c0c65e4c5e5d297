"""Layout of a value in shared memory: array buffers aligned to 64 bytes, the rest pickled.

Layout of a message in a slot: the number of buffers and the length of the pickled part (8 bytes each), the lengths of
the buffers (8 bytes each), the pickled part, and each buffer at the next multiple of 64.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.dataflow.parallel.functions import dump

__all__ = ["ALIGNMENT_BYTES", "Packed", "pack", "unpack"]

ALIGNMENT_BYTES = 64
SMALL_BYTES = 4096
"""An array below this size is copied into the pickled part: a buffer of its own would cost more than the copy."""

_PAIR = struct.Struct("<QQ")


@dataclass(frozen=True)
class Packed:
    """A value ready to be written.

    Args:
        head: everything but the large arrays.
        buffers: the large arrays' memory, as flat bytes.
        size_bytes: what the whole takes in a slot.
    """

    head: bytes
    buffers: Sequence[memoryview]
    size_bytes: int

    def write(self, target: memoryview) -> None:
        """Write the value to the start of ``target``, which has at least ``size_bytes``."""
        position = len(self.head)
        target[:position] = self.head
        for buffer in self.buffers:
            position = _aligned(position)
            end = position + buffer.nbytes
            # NumPy lets other threads run while it copies; a memoryview's assignment does not.
            np.copyto(np.frombuffer(target[position:end], np.uint8), np.frombuffer(buffer, np.uint8))
            position = end


def pack(value: Any, *, upwards: bool = False) -> Packed:
    """Return ``value`` ready to be written; its arrays are not copied yet, so it must not change before ``write()``.

    Args:
        value: anything that ``functions.dump`` takes.
        upwards: the reader is the process that started this one.
    """
    buffers: list[memoryview] = []

    def take(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < SMALL_BYTES:
            return True
        buffers.append(raw)
        return False

    body = dump(value, take, upwards=upwards)
    lengths = struct.pack(f"<{len(buffers)}Q", *(buffer.nbytes for buffer in buffers))
    head = _PAIR.pack(len(buffers), len(body)) + lengths + body
    size = len(head)
    for buffer in buffers:
        size = _aligned(size) + buffer.nbytes
    return Packed(head, buffers, size)


def unpack(source: memoryview) -> Any:
    """Return the value that lies at the start of ``source``; its large arrays are views of that memory."""
    number, body_bytes = _PAIR.unpack_from(source)
    start = _PAIR.size + 8 * number
    lengths = struct.unpack_from(f"<{number}Q", source, _PAIR.size)
    position = start + body_bytes
    buffers = []
    for length in lengths:
        position = _aligned(position)
        buffers.append(source[position : position + length])
        position += length
    return pickle.loads(source[start : start + body_bytes], buffers=buffers)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
