"""Combination of several flows: concatenated, side by side, and mixed at random."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.stages.batching import length_or_none
from ziggurat.errors import DataError, UsageError

__all__ = ["ConcatData", "JoinData", "RandomChooseData", "RandomMixData"]

_logger = logging.getLogger(__name__)

_DRAWS = 256
"""How many random choices are drawn at a time."""


class _ManyFlows(DataFlow):
    """A stage that reads several flows."""

    def __init__(self, flows: Sequence[DataFlow], *, distinct: bool = True) -> None:
        self.df_lists = list(flows)
        name = type(self).__name__
        if not self.df_lists or not all(isinstance(flow, DataFlow) for flow in self.df_lists):
            raise UsageError(f"`{name}` takes one or more data flows.", received=repr(flows))
        if distinct and len({id(flow) for flow in self.df_lists}) < len(self.df_lists):
            raise UsageError(
                f"`{name}` reads all its flows at the same time, and an object has one pass at a time.",
                received="the same object twice",
                advice="Make another object for the second place.",
            )

    def children(self) -> Sequence[DataFlow]:
        """Return the flows that are read."""
        return self.df_lists


class ConcatData(_ManyFlows):
    """One flow after the other.

    Args:
        df_lists: the flows; one may come more than once, each time with a pass of its own.
    """

    def __init__(self, df_lists: Sequence[DataFlow]) -> None:
        super().__init__(df_lists, distinct=False)
        self._place = 0

    def __len__(self) -> int:
        return sum(len(flow) for flow in self.df_lists)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints of all flows."""
        if not self._ziggurat_resume_index:
            self._place = 0
        while self._place < len(self.df_lists):
            yield from self.df_lists[self._place]
            self._place += 1

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        offered = [share.offer(flow) for flow in self.df_lists]
        return any(offered)

    def stage_state(self) -> int:
        """Return the place of the flow that is read."""
        return self._place

    def load_stage_state(self, state: int) -> None:
        """Take back the place of the flow that is read."""
        self._place = state


class JoinData(_ManyFlows):
    """The components of several flows in one datapoint; a pass ends with the shortest of them.

    Args:
        df_lists: flows of lists or tuples, whose components come one after the other; or of dicts, which are merged
            and have no key in common.

    Where two lengths are known and differ, a part of the data is never seen, which is logged as a warning.
    """

    def __init__(self, df_lists: Sequence[DataFlow]) -> None:
        super().__init__(df_lists)
        lengths = [length_or_none(flow) for flow in self.df_lists]
        if len({length for length in lengths if length is not None}) > 1:
            _logger.warning("JoinData ends with the shortest of its flows; their lengths are %s.", lengths)

    def __len__(self) -> int:
        lengths = [length for flow in self.df_lists if (length := length_or_none(flow)) is not None]
        return min(lengths) if lengths else len(self.df_lists[0])

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the joined datapoints."""
        passes = [iter(flow) for flow in self.df_lists]
        while True:
            points = []
            for items in passes:
                try:
                    points.append(next(items))
                except StopIteration:
                    return
            yield _joined(points)


class RandomChooseData(_ManyFlows):
    """Each datapoint from a flow that is drawn at random; a pass ends when the flow that is drawn has no more.

    Args:
        df_lists: flows, drawn with equal probability; or pairs of a flow and its weight. Weights need not add up to 1.
    """

    def __init__(self, df_lists: Sequence[DataFlow | tuple[DataFlow, float]]) -> None:
        pairs: list[Any] = [item if isinstance(item, (tuple, list)) else (item, None) for item in df_lists]
        super().__init__([flow for flow, _ in pairs])
        weights = [weight for _, weight in pairs]
        if all(weight is None for weight in weights):
            weights = [1.0] * len(weights)
        try:
            shares = np.asarray(weights, dtype=float)
        except (TypeError, ValueError):
            shares = np.array([np.nan])
        if not (np.all(np.isfinite(shares)) and np.all(shares >= 0) and shares.sum() > 0):
            raise UsageError(
                "Every flow has a weight of 0 or more, with a positive sum, or none has.",
                received=", ".join(map(str, weights)),
            )
        self.probabilities = shares / shares.sum()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield datapoints of the flows that are drawn."""
        passes = [iter(flow) for flow in self.df_lists]
        for place in self._draws():
            try:
                point = next(passes[place])
            except StopIteration:
                return
            yield point

    def _draws(self) -> Iterator[int]:
        """Yield the places of the flows to read, from ``resume_index`` on."""
        rng = self._ziggurat_stream("choice").seek(self._ziggurat_pass_index)
        rng.random_sample(self._ziggurat_resume_index)
        borders = np.cumsum(self.probabilities)[:-1]
        while True:
            yield from np.searchsorted(borders, rng.random_sample(_DRAWS), side="right").tolist()


class RandomMixData(_ManyFlows):
    """All datapoints of several flows; from which one the next comes is drawn at random, in proportion to the lengths.

    Args:
        df_lists: flows of known, exact length.
    """

    def __init__(self, df_lists: Sequence[DataFlow]) -> None:
        super().__init__(df_lists)
        self._lengths = [len(flow) for flow in self.df_lists]

    def __len__(self) -> int:
        return sum(self._lengths)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield all datapoints."""
        passes = [iter(flow) for flow in self.df_lists]
        for place in self._places():
            try:
                point = next(passes[place])
            except StopIteration:
                flow = self.df_lists[place]
                raise DataError(
                    "`RandomMixData` needs flows of exact length.",
                    received=f"{flow._ziggurat_delivered} datapoints from {type(flow).__name__} of length "
                    f"{self._lengths[place]}",
                    advice="Use `RandomChooseData`, which needs no lengths.",
                ) from None
            yield point

    def _places(self) -> Iterator[int]:
        """Yield the places of the flows to read, from ``resume_index`` on."""
        order = self._ziggurat_stream("mix").seek(self._ziggurat_pass_index).permutation(len(self))
        borders = np.cumsum(self._lengths)[:-1]
        for start in range(self._ziggurat_resume_index, len(order), _DRAWS):
            yield from np.searchsorted(borders, order[start : start + _DRAWS], side="right").tolist()


def _joined(points: list[Datapoint]) -> Datapoint:
    if all(isinstance(point, dict) for point in points):
        merged = {key: value for point in points for key, value in point.items()}
        if len(merged) < sum(map(len, points)):
            twice = sorted({str(key) for key in merged if sum(key in point for point in points) > 1})
            raise DataError("Dicts that are joined have no key in common.", received=f"{', '.join(twice)} twice")
        return merged
    if not all(isinstance(point, (list, tuple)) for point in points):
        raise DataError(
            "Datapoints that are joined are all lists or tuples, or all dicts.",
            received=", ".join(type(point).__name__ for point in points),
        )
    return [component for point in points for component in point]
