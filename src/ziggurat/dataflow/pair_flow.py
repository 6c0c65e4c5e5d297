"""Flow that makes pairs of the same or different classes of labeled images.

It reads an indexed flow by index, so that it is itself indexed, resumable, and free of memory for images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.random import RandomStream
from ziggurat.errors import DataError, UsageError

__all__ = ["PairsOfClasses"]


class _OverIndexed(IndexedFlow):
    """An indexed flow that reads another by index, and has its error policy.

    The other flow is not one of its children: no pass of it ever begins.
    """

    def __init__(self, flow: IndexedFlow, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        if not isinstance(flow, IndexedFlow):
            raise UsageError(
                f"`{type(self).__name__}` reads a flow by index.",
                received=type(flow).__name__,
                advice="Give an `IndexedFlow`, such as `RecordData`, `ImageFolder` or `DataFromList`.",
            )
        self.policy = flow._ziggurat_policy
        self._flow = flow

    def prepare(self) -> None:
        """Open what the other flow needs."""
        self._flow.reset_state()

    def close(self) -> None:
        """Close the other flow."""
        self._flow._ziggurat_close()
        super().close()


class PairsOfClasses(_OverIndexed):
    """Pairs of the images of a flow of ``[image, label]``: datapoints ``[image, image, same]``, ``same`` 1 or 0.

    Every labeled sample is the first image of ``pairs_per_sample`` pairs. Half of all pairs (rounded down) have a
    second image of the same class, drawn evenly from its other samples; the rest have one drawn evenly from all
    samples of the other classes. The only sample of a class makes only different pairs; where there are so many of
    these that half is not reached, all others make same pairs.

    A pair depends on ``seed``, pass and number alone, and not on who reads it. Its index is its number, plus
    ``len(flow)`` for each pass before: ``datapoint(index)`` needs to know nothing else.

    Args:
        flow: of the samples. Images of any form (arrays, bytes, paths) are passed on as they are.
        labels: (N) class number of each of its samples; those with a negative one are in no pair.
        pairs_per_sample: how many pairs each sample begins.
        seed: of the pairs. The order of a shuffled pass depends on the seed of the pipeline, as in other flows.
        shuffle: new pairs in every pass, in a new random order; otherwise the pairs of the first pass in every pass,
            in the order of the samples.

    Attributes:
        unlabeled: number of samples that are in no pair, because their label is negative.

    Raises:
        UsageError: where ``flow`` is no indexed flow, or there is not one label for each sample.
        DataError: where there are fewer than two classes, or no class has two samples.
    """

    def __init__(
        self,
        flow: IndexedFlow,
        labels: Sequence[int] | np.ndarray,
        *,
        pairs_per_sample: int = 1,
        seed: int,
        shuffle: bool = False,
    ) -> None:
        super().__init__(flow, shuffle=shuffle)
        numbers = np.asarray(labels)
        if numbers.shape != (len(flow),) or (numbers.size and numbers.dtype.kind not in "iu"):
            raise UsageError(
                "There is one class number for each sample of the flow.",
                received=f"{numbers.dtype} labels of shape {numbers.shape} for {len(flow)} samples",
            )
        if pairs_per_sample < 1:
            raise UsageError("`pairs_per_sample` is at least 1.", received=str(pairs_per_sample))
        self._times = int(pairs_per_sample)
        self._pair_seed = int(seed)
        self._classes = _Classes(numbers)
        self._drawn: tuple[int, np.ndarray, np.ndarray] | None = None
        self.unlabeled = int(len(numbers) - len(self._classes.rows))

    def __len__(self) -> int:
        return len(self._classes.rows) * self._times

    def order(self) -> np.ndarray:
        """Return the indices of the pairs of the pass in their order, (N) integers."""
        order = super().order()
        return order + max(0, self._ziggurat_pass_index) * len(self) if self.shuffle else order

    def pair(self, index: int) -> tuple[int, int, bool]:
        """Return the indices of both samples in the flow that is read, and whether their class is the same.

        Raises:
            IndexError: where the index is negative.
        """
        pass_index, place = divmod(index, len(self))
        seconds, same = self._of_pass(pass_index)
        return int(self._classes.rows[place // self._times]), int(seconds[place]), bool(same[place])

    def key(self, index: int) -> str:
        """Return the keys of both samples."""
        first, second, _same = self.pair(index)
        return f"{self._flow.key(first)} + {self._flow.key(second)}"

    def datapoint(self, index: int) -> list[Any]:
        """Return one pair."""
        first, second, same = self.pair(index)
        return [self._flow.datapoint(first)[0], self._flow.datapoint(second)[0], int(same)]

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return both images and ``same`` (int64) of many pairs."""
        firsts, seconds, same = self._pairs(np.asarray(indices))
        return [self._flow.gather(firsts)[0], self._flow.gather(seconds)[0], same.astype(np.int64)]

    def stage_state(self) -> Any:
        """Return the seed of the pairs, and how many of the pass were dropped."""
        return {"pair_seed": self._pair_seed, "dropped": super().stage_state()}

    def load_stage_state(self, state: Any) -> None:
        """Take back the seed of the pairs, and how many of the pass were dropped."""
        self._pair_seed = state["pair_seed"]
        self._drawn = None
        super().load_stage_state(state["dropped"])

    def _pairs(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples of pairs, and whether their class is the same, (N) each."""
        passes, places = np.divmod(indices, len(self))
        seconds, same = np.empty(len(indices), np.int64), np.empty(len(indices), bool)
        for number in np.unique(passes).tolist():  # mostly one; more where rows of several passes are asked for at once
            chosen = passes == number
            of_pass = self._of_pass(number)
            seconds[chosen], same[chosen] = (values[places[chosen]] for values in of_pass)
        return self._classes.rows[places // self._times], seconds, same

    def _of_pass(self, pass_index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the second sample of each pair of a pass, and whether its class is the same; the last pass is kept."""
        if pass_index < 0:
            raise IndexError("The index of a pair is 0 or more.")
        drawn = self._drawn
        if drawn is None or drawn[0] != pass_index:
            rng = RandomStream(self._pair_seed, ("pairs",)).seek(pass_index)
            drawn = self._drawn = pass_index, *self._classes.draw(self._times, rng)
        return drawn[1], drawn[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_drawn": None}


class _Classes:
    """The labeled samples, sorted by class, so that a partner is found by counting on from a sample.

    Args:
        labels: (N) class numbers.
    """

    def __init__(self, labels: np.ndarray) -> None:
        self.rows = np.flatnonzero(labels >= 0)
        known = labels[self.rows]
        self._sorted = np.argsort(known, kind="stable")
        _names, first, counts = np.unique(known[self._sorted], return_index=True, return_counts=True)
        if len(counts) < 2 or counts.max() < 2:
            raise DataError(
                "Pairs need two classes or more, one of them with two samples or more.",
                received=f"{len(counts)} classes with {counts.max(initial=0)} samples at most",
                advice="Add samples, or choose another dataset.",
            )
        self._place = np.empty(len(known), np.int64)
        self._place[self._sorted] = np.arange(len(known))
        of_class = np.repeat(np.arange(len(counts)), counts)[self._place]
        self._first, self._count = first[of_class], counts[of_class]

    def draw(self, times: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """Return the row of the second image of every pair, and whether its class is the same, (rows * times) each."""
        place, first, count = (np.repeat(values, times) for values in (self._place, self._first, self._count))
        same = np.zeros(len(place), bool)
        same[rng.permutation(np.flatnonzero(count > 1))[: len(place) // 2]] = True
        chance = rng.random_sample(len(place))
        # Counted on from the sample within its class, or from the end of its class around to its beginning.
        inside = first + (place - first + 1 + (chance * (count - 1)).astype(np.int64)) % count
        outside = (first + count + (chance * (len(self.rows) - count)).astype(np.int64)) % len(self.rows)
        return self.rows[self._sorted[np.where(same, inside, outside)]], same
