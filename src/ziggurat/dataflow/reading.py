"""Bulk reading of a flow: the same datapoints as one by one, at a fraction of the cost.

``flow.read()`` begins a pass as ``iter(flow)`` does and returns a ``Reader``. A stage that can produce many
datapoints at once implements ``bulk()``; every other stage is read one by one behind the same interface.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Self

from ziggurat.dataflow.flow_state import FlowState, Position

__all__ = ["Bulk", "Reader"]


class Bulk:
    """One pass of a stage, made many datapoints at a time; it starts at the stage's ``resume_index``."""

    stacks: bool = False
    """True where ``batch()`` can be used."""

    fresh: bool = False
    """True where the datapoints of ``points()`` are lists that nobody else holds, and may be changed."""

    def points(self, count: int) -> list[Any]:
        """Return the next ``count`` datapoints; fewer only where the pass ends."""
        raise NotImplementedError

    def batch(self, count: int) -> tuple[int, Any]:
        """Return how many datapoints were left (at most ``count``), and their components stacked on a new axis 0."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop reading."""


class Reader:
    """Reads one pass of a flow, and counts in the flow what it hands out.

    Use it in ``with``, or call ``close()``.
    """

    def __init__(self, life: FlowState, position: Position, bulk: Bulk | None, items: Iterator[Any]) -> None:
        self._life = life
        self._position = position
        self._bulk = bulk
        self._items = items

    @property
    def stacks(self) -> bool:
        """Tell whether ``take_batch()`` can be used."""
        return self._bulk is not None and self._bulk.stacks

    @property
    def fresh(self) -> bool:
        """Tell whether the datapoints of ``take()`` are lists that nobody else holds."""
        return self._bulk is not None and self._bulk.fresh

    def take(self, count: int) -> list[Any]:
        """Return the next ``count`` datapoints; fewer only where the pass ends."""
        if self._bulk is None:
            return list(islice(self._items, count))
        self._life.check_newest(self._position)
        with self._life.lock:
            began = time.perf_counter()
            try:
                points = self._bulk.points(count)
            finally:
                self._life.total_s += time.perf_counter() - began
            self._count(len(points), count)
        return points

    def take_batch(self, count: int) -> tuple[int, Any]:
        """Return the number of datapoints in the next batch (fewer than ``count`` only at the end), and the batch."""
        assert self._bulk is not None
        self._life.check_newest(self._position)
        with self._life.lock:
            began = time.perf_counter()
            try:
                taken, batch = self._bulk.batch(count)
            finally:
                self._life.total_s += time.perf_counter() - began
            self._count(taken, count)
        return taken, batch

    def close(self) -> None:
        """Stop reading; the pass is broken off unless it came to its end."""
        if self._bulk is not None:
            self._bulk.close()
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _count(self, taken: int, wanted: int) -> None:
        self._position.delivered += taken
        self._life.datapoints += taken
        if taken < wanted:
            self._position.ended = True
