"""Batching by shape: batches of equally shaped datapoints from a flow with several shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint, UnknownLengthError
from ziggurat.dataflow.stacking import stack_datapoints
from ziggurat.dataflow.stages.components import component_of
from ziggurat.dataflow.stages.holding import Held, HoldingFlow
from ziggurat.errors import UsageError

__all__ = ["BatchDataByShape"]


class BatchDataByShape(HoldingFlow):
    """Batches of datapoints that have one component of the same shape; a batch comes as soon as it is full.

    Args:
        ds: a flow.
        batch_size: datapoints in a batch.
        idx: number or key of the component that is looked at.
        remainder: at the end of a pass also yield what is left of each shape; it is dropped otherwise.

    Resuming reads again from the oldest datapoint that waits for others of its shape.
    """

    def __init__(self, ds: DataFlow, batch_size: int, idx: int | str, *, remainder: bool = False) -> None:
        super().__init__(ds)
        if batch_size < 1:
            raise UsageError("`batch_size` is 1 or more.", received=batch_size)
        self.batch_size = int(batch_size)
        self.idx = idx
        self.remainder = remainder

    def __len__(self) -> int:
        raise UnknownLengthError(self)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the batches."""
        held, loaded = self.begin_holding(every=max(1, self.batch_size))
        waiting = loaded.get("waiting", [])
        groups: dict[tuple[int, ...], list[int]] = {}
        with held:
            held.read_again(loaded.get("count", 0), waiting)
            for number in waiting:
                self._add(held, number, groups)
            while (number := held.pull()) is not None:
                full = self._add(held, number, groups)
                if full:
                    yield _batch(held, full)
            for shape in list(groups) if self.remainder else ():
                yield _batch(held, groups.pop(shape))

    def held_state(self) -> dict[str, Any]:
        """Return how many datapoints were read, and the numbers of those that wait."""
        assert self._held is not None
        return {"count": self._held.count, "waiting": self._held.numbers()}

    def _add(self, held: Held, number: int, groups: dict[tuple[int, ...], list[int]]) -> list[int] | None:
        """Put a datapoint to those of its shape; return them where they fill a batch."""
        shape = np.shape(component_of(held.points[number], self.idx))
        group = groups.setdefault(shape, [])
        group.append(number)
        return groups.pop(shape) if len(group) == self.batch_size else None


def _batch(held: Held, numbers: list[int]) -> Datapoint:
    return stack_datapoints([held.points.pop(number) for number in numbers], numbers=numbers)
