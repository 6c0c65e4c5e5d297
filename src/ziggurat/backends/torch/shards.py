"""Rows of a batch for each device, and the memory through which the first process hands them to another."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ziggurat.dataflow.parallel.shared_memory import ALIGNMENT_BYTES, Window, anonymous_file

__all__ = ["Layout", "ShardMemory", "even_counts", "row_ranges"]

_FIRST_BYTES = 1 << 20

Layout: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Type and shape of each array of a shard."""


def even_counts(total: int, pieces: int) -> list[int]:
    """Return so many counts that add up to a total and differ by 1 at most, the larger ones first."""
    whole, rest = divmod(total, pieces)
    return [whole + (number < rest) for number in range(pieces)]


@lru_cache(maxsize=64)
def row_ranges(total: int, pieces: int, devices: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the rows of each device, one range for each part of the batch; a range may be empty.

    The parts are those of a training on one device; each of them is split over the devices.

    Args:
        total: rows of the batch.
        pieces: parts that are computed one after another.
        devices: how many there are.
    """
    ranges: list[list[tuple[int, int]]] = [[] for _ in range(devices)]
    first = 0
    for rows in even_counts(total, pieces):
        for own, count in zip(ranges, even_counts(rows, devices), strict=True):
            if rows:
                own.append((first, first + count))
            first += count
    return tuple(tuple(own) for own in ranges)


class ShardMemory:
    """Memory that two processes share, for the arrays of one shard at a time.

    Args:
        file: a descriptor of it, from the other process; None to make one.
    """

    def __init__(self, file: int | None = None) -> None:
        self.file = anonymous_file(_FIRST_BYTES) if file is None else file
        self._window = Window(self.file)
        self._layout: Layout | None = None
        self._arrays: list[np.ndarray] = []

    def arrays(self, layout: Layout) -> list[np.ndarray]:
        """Return the memory as arrays, to write or to read."""
        if layout != self._layout:
            offsets, end = [], 0
            for dtype, shape in layout:
                offsets.append(end)
                size = np.dtype(dtype).itemsize * math.prod(shape)
                end += -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            if end > os.fstat(self.file).st_size:
                os.ftruncate(self.file, end)
            self._arrays = [
                np.ndarray(shape, dtype, self._window.view(offset, np.dtype(dtype).itemsize * math.prod(shape)))
                for offset, (dtype, shape) in zip(offsets, layout, strict=True)
            ]
            self._layout = layout
        return self._arrays

    def write(self, batch: Sequence[np.ndarray], ranges: Sequence[tuple[int, int]]) -> Layout:
        """Write some rows of each array of a batch, range after range; return how they lie there."""
        count = sum(end - first for first, end in ranges)
        layout = tuple((each.dtype.str, (count, *each.shape[1:])) for each in batch)
        for source, target in zip(batch, self.arrays(layout), strict=True):
            place = 0
            for first, end in ranges:
                target[place : place + end - first] = source[first:end]
                place += end - first
        return layout

    def close(self) -> None:
        """Let go of the file; arrays that are in use stay."""
        self._arrays = []
        os.close(self.file)
