"""Task and result records on the pipes between a process and its workers; the data lies in shared memory.

A record is one write of 64 bytes to a pipe, which the kernel keeps atomic: several workers read their tasks from one
pipe, the first free worker takes the next task, and all write their results to another pipe. Nothing can be dropped:
a pipe blocks or refuses when it is full.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

__all__ = ["GENERATION_CELL", "GRANT", "RECORD_BYTES", "WORKERS_AT_MOST", "Done", "Outcome", "Task", "cell_of"]

_RECORD = struct.Struct("<8q")
RECORD_BYTES = _RECORD.size
GRANT = struct.Struct("<qq")
"""Offset and size of the slot that a worker asked for, on its own socket."""

GENERATION_CELL = 0
"""Place in the header of the shared memory, counted in 8 bytes: tasks of an older generation need no work."""

WORKERS_AT_MOST = 256


def cell_of(worker: int) -> int:
    """Return the place in the header where a worker notes the number of the task it is at, plus one; 0: none."""
    return 8 + worker


class Outcome(IntEnum):
    """What a result record says."""

    DONE = 0
    FAILED = 1
    NEEDS_ROOM = 2
    """The result does not fit: the worker waits for a slot of ``size`` bytes."""
    STALE = 3


class Task(NamedTuple):
    """Where a task lies, and where its result goes."""

    number: int
    generation: int
    offset: int
    size: int
    out_offset: int
    out_size: int

    def packed(self) -> bytes:
        """Return the record."""
        return _RECORD.pack(*self, 0, 0)

    @classmethod
    def of(cls, record: bytes) -> Task:
        """Return what the record says."""
        return cls(*_RECORD.unpack(record)[:6])


class Done(NamedTuple):
    """Result of a task.

    Args:
        number: that of the task.
        worker: who did it.
        outcome: what this record says.
        size: bytes of the result.
        busy_ns: time that it took.
        keeps_input: something in the worker still refers to the memory of the task.
    """

    number: int
    worker: int
    outcome: int
    size: int = 0
    busy_ns: int = 0
    keeps_input: int = 0

    def packed(self) -> bytes:
        """Return the record."""
        return _RECORD.pack(*self, 0, 0)

    @classmethod
    def of(cls, record: bytes | memoryview) -> Done:
        """Return what the record says."""
        return cls(*_RECORD.unpack(record)[:6])
