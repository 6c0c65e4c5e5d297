"""Batching of datapoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow
from ziggurat.dataflow.reading import Reader
from ziggurat.dataflow.stacking import stack_datapoints
from ziggurat.errors import UsageError

__all__ = ["BatchData", "length_or_none", "stack_datapoints"]


class BatchData(ProxyDataFlow):
    """Batches of ``batch_size`` datapoints: each component is stacked on a new axis 0, in new memory.

    Args:
        ds: a flow of lists, tuples or dicts; a component may be a dict again.
        batch_size: datapoints in a batch.
        remainder: also yield a smaller last batch; it is dropped otherwise.
        use_list: make lists instead of arrays, for components of different shapes.

    A flow that gathers by index (``DataFromArrays`` and readers like it) is read batch by batch.
    """

    def __init__(self, ds: DataFlow, batch_size: int, remainder: bool = False, use_list: bool = False) -> None:
        super().__init__(ds)
        if batch_size < 1:
            raise UsageError("`batch_size` is 1 or more.", received=batch_size)
        self.batch_size = int(batch_size)
        self.remainder = remainder
        self.use_list = use_list
        self._share: Any = None
        length = length_or_none(ds)
        if not remainder and length is not None and length < batch_size:
            raise UsageError(
                "A pass must fill at least one batch.",
                received=f"batch_size {batch_size} for {length} datapoints",
                advice="Make `batch_size` smaller, or set `remainder=True`.",
            )

    def __len__(self) -> int:
        """Return the number of batches in a pass; with ``remainder`` it is right where the length of ``ds`` is."""
        full, rest = divmod(len(self.ds), self.batch_size)
        return full + (1 if rest and self.remainder else 0)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the batches."""
        if self._ziggurat_resume_index and self.ds._ziggurat_ended:
            return  # the smaller last batch was the newest
        with self.ds._ziggurat_read() as reader:
            next_batch = self._gathered if reader.stacks and not self.use_list else self._stacked
            while True:
                count, batch = next_batch(reader)
                if count == self.batch_size or (count and self.remainder):
                    yield batch
                if count < self.batch_size:
                    return

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.share``."""
        self._share = share
        return share.offer(self.ds)

    def _gathered(self, reader: Reader) -> tuple[int, Datapoint]:
        return reader.take_batch(self.batch_size)

    def _stacked(self, reader: Reader) -> tuple[int, Datapoint]:
        points = reader.take(self.batch_size)
        count = len(points)
        if not count or (count < self.batch_size and not self.remainder):
            return count, None
        if self._share is not None and not self._share.mine:
            return count, self._share.NOT_MINE
        return count, stack_datapoints(points, use_list=self.use_list, first=self.ds._ziggurat_delivered - count)


def length_or_none(ds: DataFlow) -> int | None:
    """Return the number of datapoints in a pass, or None where it is not known."""
    try:
        return len(ds)
    except (NotImplementedError, TypeError):
        return None
