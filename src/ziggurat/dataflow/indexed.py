"""Flows over indexed data: random access by index, in order or in a new random order in each pass.

A dataset reader subclasses ``IndexedFlow``: it defines ``__len__`` and ``datapoint(index)``, and also
``gather(indices)`` where it can read a whole batch at once. Resuming costs nothing: seed and pass determine the order
of a pass. ``ArraySet`` is the base of in-memory datasets of small images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import Bulk, DataFlow, Datapoint, RNGDataFlow

__all__ = ["ArraySet", "IndexedFlow"]

_BLOCK = 1024
"""How many indices become Python integers at a time: a million of them would cost 36 MB."""


class IndexedFlow(RNGDataFlow):
    """A flow whose datapoints have numbers from 0 to ``len(self) - 1``.

    Args:
        shuffle: a new random order in every pass.

    Where a subclass fails on a datapoint, its ``policy`` decides, and ``key(index)`` names it.
    """

    gathers: bool = False
    """True where ``gather()`` can be used; it must then give what stacking ``datapoint()`` would give."""

    shuffle: bool = False
    repeats: np.ndarray | None = None
    """(N) how often each datapoint is due, in relation to the others; None for once each. A pass has N all the same."""

    _dropped: int = 0
    _share: Any = None

    def __init__(self, *, shuffle: bool = False) -> None:
        self.shuffle = shuffle

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "datapoint" in own:  # inherited ways to read many would bypass it
            if "gather" not in own and "gathers" not in own:
                cls.gathers = False
            if "read_many" not in own:
                cls.read_many = IndexedFlow.read_many

    # ---- what a subclass implements

    def __len__(self) -> int:
        """Return the number of datapoints."""
        raise NotImplementedError

    def datapoint(self, index: int) -> Datapoint:
        """Return one datapoint."""
        raise NotImplementedError

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return the components of many datapoints, each stacked on a new axis 0, in new memory.

        Args:
            indices: (N,) integers.
        """
        raise NotImplementedError

    def read_many(self, indices: list[int]) -> list[Datapoint]:
        """Return the datapoints of many indices, without those that the policy drops."""
        points = []
        for index in indices:
            try:
                points.append(self.datapoint(index))
            except Exception as error:
                self._drop(error, index)
        return points

    def key(self, index: int) -> str | int:
        """Return what names a datapoint in an error."""
        return index

    def order(self) -> np.ndarray:
        """Return the indices of pass ``pass_index`` in their order, (N,) integers."""
        count = len(self)
        if not self.shuffle and self.repeats is None:
            return np.arange(count)
        generator = self._ziggurat_stream("order").seek(self._ziggurat_pass_index)
        if self.repeats is None:
            return generator.permutation(count)
        # Systematic sampling: each datapoint comes as often as it is due, up or down to a whole number.
        ends = np.cumsum(self.repeats) * (count / np.sum(self.repeats))
        drawn = np.searchsorted(ends, generator.random_sample() + np.arange(count), side="right")
        drawn = np.minimum(drawn, count - 1)  # the last end may be a rounding error short of the count
        return generator.permutation(drawn) if self.shuffle else drawn

    # ---- the flow

    def children(self) -> Sequence[DataFlow]:
        """Return nothing: such a flow reads no other."""
        return ()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints in the order of the pass."""
        remaining = self._remaining()
        for start in range(0, len(remaining), _BLOCK):
            for index in remaining[start : start + _BLOCK].tolist():
                if self._share is not None and not self._share.mine:
                    yield self._share.NOT_MINE
                    continue
                try:
                    point = self.datapoint(index)
                except Exception as error:
                    self._drop(error, index)
                    continue
                yield point

    def bulk(self) -> Bulk | None:
        """Read many at a time."""
        return _IndexedBulk(self, self._remaining()) if self._share is None else None

    def take_share(self, share: Any) -> None:
        """Read only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        self._share = share

    def stage_state(self) -> Any:
        """Return how many datapoints of the pass were dropped."""
        return self._dropped or None

    def load_stage_state(self, state: Any) -> None:
        """Take back how many datapoints of the pass were dropped."""
        self._dropped = state or 0

    def _remaining(self) -> np.ndarray:
        if not self._ziggurat_resume_index:
            self._dropped = 0
        return self.order()[self._ziggurat_resume_index + self._dropped :]

    def _drop(self, error: Exception, index: int) -> None:
        self._ziggurat_policy.handle(error, key=self.key(index))
        if self._share is not None:
            self._share.dropped()
        self._dropped += 1


class _IndexedBulk(Bulk):
    """Reads the rest of a pass of an indexed flow many datapoints at a time."""

    def __init__(self, flow: IndexedFlow, remaining: np.ndarray) -> None:
        self._flow = flow
        self._remaining = remaining
        self._place = 0
        self.stacks = self.fresh = flow.gathers

    def points(self, count: int) -> list[Datapoint]:
        """Return the next datapoints; those of a gathered batch are views of it."""
        if self._flow.gathers:
            return list(map(list, zip(*self.batch(count)[1])))
        points: list[Datapoint] = []
        while len(points) < count and self._place < len(self._remaining):
            points += self._flow.read_many(self._next(count - len(points)).tolist())
        return points

    def batch(self, count: int) -> tuple[int, list[np.ndarray]]:
        """Gather the next datapoints."""
        indices = self._next(count)
        return len(indices), self._flow.gather(indices)

    def _next(self, count: int) -> np.ndarray:
        start = self._place
        self._place = min(start + count, len(self._remaining))
        return self._remaining[start : self._place]


class ArraySet(IndexedFlow):
    """Images with labels: datapoints ``[image, label]``.

    A subclass sets what ``_load()`` needs before it calls ``super().__init__``. In another process the files are read
    again, instead of being sent there.

    Args:
        shuffle: a new random order in every pass.
    """

    gathers = True

    def __init__(self, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self._arrays: tuple[np.ndarray, np.ndarray] | None = self._load()

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        """Return images (N, …) and labels (N,)."""
        raise NotImplementedError

    def _converted(self, images: np.ndarray) -> np.ndarray:
        """Return images as the flow yields them, in new memory; it works on one and on many."""
        return images.copy()

    def _label(self, label: Any) -> Any:
        """Return one label as the flow yields it."""
        return label

    @property
    def images(self) -> np.ndarray:
        """All images as they are stored, (N, …) uint8; not to be changed."""
        return self._both()[0]

    @property
    def labels(self) -> np.ndarray:
        """All labels, (N,); not to be changed."""
        return self._both()[1]

    def __len__(self) -> int:
        return len(self._both()[1])

    def datapoint(self, index: int) -> list[Any]:
        """Return an image, in new memory, and its label."""
        images, labels = self._both()
        return [self._converted(images[index]), self._label(labels[index])]

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return images and labels of many datapoints."""
        images, labels = self._both()
        return [self._converted(images.take(indices, axis=0)), labels.take(indices)]

    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        if self._arrays is None:
            self._arrays = self._load()
        return self._arrays

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": None}
