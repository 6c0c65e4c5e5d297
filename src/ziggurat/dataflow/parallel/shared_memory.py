"""Shared memory between a process and its workers: slots of one anonymous file, and the layout of values in them.

The file has no name, so nothing can be left behind in ``/dev/shm``: the kernel frees it with the last process that
maps it. Only the parent allocates and frees slots; a worker reads and writes at the offsets it receives. The system
provides memory as slots are first written, lowest addresses first, and never more than the requested size, unless a
single message does not fit (see ``allocate``).

Layout of a message in a slot: the number of buffers and the length of the pickled part (8 bytes each), the lengths of
the buffers (8 bytes each), the pickled part, and each buffer at the next multiple of 64.
"""

from __future__ import annotations

import bisect
import mmap
import os
import pickle
import struct
import tempfile
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.dataflow.parallel.pickling import dump

__all__ = ["ALIGNMENT_BYTES", "HEADER_BYTES", "Arena", "Packed", "Slot", "Window", "anonymous_file", "pack", "unpack"]

HEADER_BYTES = 4096
"""Start of the file, where each worker notes what it is doing; no slot lies there."""

_GRAIN_BYTES = 256  # a multiple of the alignment, large enough that free slots do not splinter

ALIGNMENT_BYTES = 64
SMALL_BYTES = 4096
"""An array below this size is copied into the pickled part: a buffer of its own would cost more than the copy."""

_PAIR = struct.Struct("<QQ")


@dataclass(frozen=True)
class Slot:
    """A piece of the shared memory: ``size_bytes`` from ``offset``."""

    offset: int
    size_bytes: int


class Lease(np.ndarray):
    """Memory of one slot, as flat bytes: the arrays in it keep it alive, and its end can be seen (weak references)."""

    def memory(self) -> memoryview:
        """Return the bytes."""
        whole: Any = self
        return memoryview(whole)


class Window:
    """A process's view of the shared file, which may have grown since it was mapped."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map = mmap.mmap(file, os.fstat(file).st_size)

    def view(self, offset: int, size_bytes: int) -> memoryview:
        """Return the bytes at ``offset``, for reading and writing."""
        return memoryview(self._reach(offset + size_bytes))[offset : offset + size_bytes]

    def lease(self, offset: int, size_bytes: int) -> Lease:
        """Return the same as an array of bytes."""
        # NumPy lets a view skip over plain arrays to what they are made of, but not over one of another type.
        return np.ndarray.__new__(Lease, (size_bytes,), np.uint8, self._reach(offset + size_bytes), offset)

    def _reach(self, end: int) -> mmap.mmap:
        """Return a map that reaches to ``end``; older maps live as long as arrays in them."""
        if end > len(self._map):
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return self._map


class Arena:
    """The parent's side: hands out slots.

    Args:
        size_bytes: how much all slots together may take.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.leased_bytes = 0
        self.file = anonymous_file(HEADER_BYTES + size_bytes)
        self.window = Window(self.file)
        self._free: list[tuple[int, int]] = [(HEADER_BYTES, size_bytes)]
        # Filled by weak references' callbacks, which may come at any moment and in any thread.
        self._returned: deque[Slot] = deque()
        self._leases: dict[int, weakref.ref[Lease]] = {}

    def allocate(self, size_bytes: int, *, must: bool = False) -> Slot | None:
        """Return a free slot, or None where there is none now.

        Args:
            size_bytes: what it must hold.
            must: let the file grow rather than return None.
        """
        self._take_back()
        size = -(-max(size_bytes, 1) // _GRAIN_BYTES) * _GRAIN_BYTES
        # First fit: low addresses are used first, and the system never provides the memory above them.
        for place, (offset, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[place]
                else:
                    self._free[place] = (offset + size, free - size)
                return Slot(offset, size)
        return self._grow(size) if must else None

    def free(self, slot: Slot) -> None:
        """Take a slot back, and join it with its free neighbors."""
        start, end = slot.offset, slot.offset + slot.size_bytes
        place = bisect.bisect(self._free, (start, 0))
        if place < len(self._free) and self._free[place][0] == end:
            end += self._free.pop(place)[1]
        if place and sum(self._free[place - 1]) == start:
            place -= 1
            start = self._free.pop(place)[0]
        self._free.insert(place, (start, end - start))

    def shrink(self, slot: Slot, size_bytes: int) -> Slot:
        """Take back what a message of ``size_bytes`` leaves of its slot."""
        keep = -(-max(size_bytes, 1) // _GRAIN_BYTES) * _GRAIN_BYTES
        if keep >= slot.size_bytes:
            return slot
        self.free(Slot(slot.offset + keep, slot.size_bytes - keep))
        return Slot(slot.offset, keep)

    def lease(self, slot: Slot) -> memoryview:
        """Return the slot's memory; the slot is free again when the last array in it is gone."""
        lease = self.window.lease(slot.offset, slot.size_bytes)
        self.leased_bytes += slot.size_bytes
        # Local names: a callback that held the arena itself would keep it alive.
        leases, returned = self._leases, self._returned

        def ended(_reference: weakref.ref[Lease]) -> None:
            leases.pop(slot.offset, None)
            returned.append(slot)

        leases[slot.offset] = weakref.ref(lease, ended)
        return lease.memory()

    def _take_back(self) -> None:
        while self._returned:
            slot = self._returned.popleft()
            self.leased_bytes -= slot.size_bytes
            self.free(slot)

    def _grow(self, size_bytes: int) -> Slot:
        end = os.fstat(self.file).st_size
        os.ftruncate(self.file, end + size_bytes)
        return Slot(end, size_bytes)


def anonymous_file(size_bytes: int) -> int:
    """Return a descriptor of a file in memory that has no name; it is not inherited by programs that are started."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("ziggurat-dataflow", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
    os.ftruncate(file, size_bytes)
    return file


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
        value: anything that ``dump`` takes.
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
