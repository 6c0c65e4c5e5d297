"""In-memory cache of a whole pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow
from ziggurat.dataflow.flow_state import Position

__all__ = ["CacheData"]


class CacheData(ProxyDataFlow):
    """The datapoints of one pass of a flow, kept in memory and yielded in every later pass: the same objects.

    The first pass fills the cache. Only a complete one is used: where the first pass is broken off, the next one fills
    it again. A stage after it that changes arrays in place changes the cache.

    Args:
        ds: a flow that ends.
        shuffle: a new random order in every pass that comes from the cache.

    Resuming reads the pass of ``ds`` that is cached again, because states hold no data.
    """

    def __init__(self, ds: DataFlow, shuffle: bool = False) -> None:
        super().__init__(ds)
        self.shuffle = shuffle
        self._forget()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints, from the cache where it is complete."""
        if self._points is None and not self._complete:
            if self._start is None:
                self._start = self.ds._ziggurat_state()
            yield from self._filling()
            return
        if self._points is None:
            self._points = list(self.ds)
        for index in self._order(len(self._points)):
            yield self._points[index]

    def stage_state(self) -> bool:
        """Tell whether the cache is complete."""
        return self._complete

    def load_stage_state(self, state: bool) -> None:
        """Take back whether the cache was complete."""
        self._forget()
        self._complete = state
        self._start = self.ds._ziggurat_state()

    def children_state(self) -> list[Any]:
        """Return the state of ``ds`` before the pass that is cached."""
        return super().children_state() if self._start is None else [self._start]

    def children_state_if_over(self) -> list[Any]:
        """Return the same, where that pass is complete."""
        return self._ziggurat_children_state() if self._complete else super().children_state_if_over()

    def close(self) -> None:
        """Free the cache, too; it is filled again by the pass that filled it."""
        if self._complete and self._points is not None:
            self.ds._ziggurat_load_state(self._start or {})
        self._points = None
        super().close()

    def _ziggurat_begin_pass(self, position: Position) -> None:
        if not position.delivered and not self._complete:
            self._start = None  # of a pass that was broken off

    def _filling(self) -> Iterator[Datapoint]:
        """Yield the pass that fills the cache, always one behind, so that it is complete with its last datapoint."""
        points: list[Datapoint] = []
        for point in self.ds:
            points.append(point)
            if len(points) - 2 >= self._ziggurat_resume_index:
                yield points[-2]
        self._points, self._complete = points, True
        if len(points) - 1 >= self._ziggurat_resume_index:
            yield points[-1]

    def _order(self, count: int) -> Iterator[int]:
        if not self.shuffle:
            return iter(range(self._ziggurat_resume_index, count))
        order: np.ndarray = self._ziggurat_stream("order").seek(self._ziggurat_pass_index).permutation(count)
        return iter(order[self._ziggurat_resume_index :].tolist())

    def _forget(self) -> None:
        self._points: list[Datapoint] | None = None
        self._start: Any = None
        self._complete = False
