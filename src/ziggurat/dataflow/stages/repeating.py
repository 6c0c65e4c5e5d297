"""Passes of a different length: repeated passes, repeated datapoints, and passes of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ziggurat.dataflow.base import Bulk, DataFlow, Datapoint, ProxyDataFlow, Reader, UnknownLengthError
from ziggurat.dataflow.stages.buffering import HoldingFlow
from ziggurat.errors import DataError, UsageError

__all__ = ["FixedSizeData", "RepeatedData", "RepeatedDataPoint"]


class RepeatedData(ProxyDataFlow):
    """Several passes of a flow in one.

    Args:
        ds: the flow to repeat.
        num: how many passes; -1: without end.
    """

    def __init__(self, ds: DataFlow, num: int) -> None:
        super().__init__(ds)
        if num < -1:
            raise UsageError(f"`num` is {num}, not a number of passes or -1 for no end.")
        self.num = int(num)
        self._done = 0
        self._share: Any = None

    def __len__(self) -> int:
        if self.num < 0:
            raise UnknownLengthError(self)
        return len(self.ds) * self.num

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints of pass after pass."""
        self.begin_rounds()
        while self.more_rounds():
            yield from self.ds
            self.end_round()

    def bulk(self) -> Bulk | None:
        """Read many at a time."""
        return _RepeatedBulk(self) if self._share is None else None

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        self._share = share
        return share.offer(self.ds)

    def stage_state(self) -> int:
        """Return how many passes of ``ds`` are done."""
        return self._done

    def load_stage_state(self, state: int) -> None:
        """Take back how many passes of ``ds`` are done."""
        self._done = state

    def begin_rounds(self) -> None:
        """Begin a pass, or go on."""
        if not self._ziggurat_resume_index:
            self._done = 0

    def more_rounds(self) -> bool:
        """Tell whether another pass of ``ds`` is to come."""
        return self.num < 0 or self._done < self.num

    def end_round(self) -> None:
        """Count a pass of ``ds``."""
        if self.num < 0 and not self.ds._ziggurat_delivered:
            raise _empty("repeated without end", self.ds)
        self._done += 1


class RepeatedDataPoint(HoldingFlow):
    """Each datapoint several times in a row: the same object.

    Args:
        ds: a flow.
        num: how many times, 1 or more.

    Resuming reads up to 32 datapoints of ``ds`` again.
    """

    def __init__(self, ds: DataFlow, num: int) -> None:
        super().__init__(ds)
        if num < 1:
            raise UsageError(f"`num` is {num}, not 1 or more.")
        self.num = int(num)

    def __len__(self) -> int:
        return len(self.ds) * self.num

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints."""
        used, again = divmod(self._ziggurat_resume_index, self.num)
        held, _ = self.begin_holding(every=32)
        with held:
            held.read_again(used + (again > 0), {used})
            while again or held.pull() is not None:
                point = held.points[used]
                for _ in range(again, self.num - 1):
                    yield point
                del held.points[used]
                yield point
                used, again = used + 1, 0


class FixedSizeData(ProxyDataFlow):
    """Passes of ``size`` datapoints, whatever the length of the flow, which is begun again where it ends.

    Args:
        ds: the flow to read.
        size: datapoints in a pass.
        keep_state: a new pass goes on where the last one stopped: of 1 to 5 in passes of 3 come 1 2 3, 4 5 1, 2 3 4, …
            Otherwise every pass begins a new pass of ``ds``: 1 2 3, 1 2 3, …
    """

    def __init__(self, ds: DataFlow, size: int, keep_state: bool = True) -> None:
        super().__init__(ds)
        if size < 1:
            raise UsageError(f"`size` is {size}, not 1 or more.")
        self._size = int(size)
        self._ziggurat_spans_passes = bool(keep_state)
        self._items: Iterator[Datapoint] | None = None

    def __len__(self) -> int:
        return self._size

    def iterate(self) -> Iterator[Datapoint]:
        """Yield ``size`` datapoints."""
        if self._items is None or not self._ziggurat_spans_passes:
            self._items = None  # the pass of `ds` that is broken off ends before the next one begins
            self._items = iter(self.ds)
        for _ in range(self._ziggurat_resume_index, self._size):
            yield self._next()

    def load_stage_state(self, state: Any) -> None:
        """Forget the pass of ``ds`` that was under way."""
        self._items = None

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        return share.offer(self.ds)

    def close(self) -> None:
        """End the pass of ``ds`` that is under way, too."""
        self._items = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        # An iterator cannot go to another process; the pass of `ds` that is under way goes on there by its state.
        under_way = self.ds._ziggurat_state() if self._ziggurat_spans_passes and not self.ds._ziggurat_ended else None
        return {**self.__dict__, "_items": None, "_under_way": under_way}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        under_way = fields.pop("_under_way")
        vars(self).update(fields)
        if under_way is not None:
            self.ds._ziggurat_load_state(under_way)

    def _next(self) -> Datapoint:
        if self._items is None:  # closed in mid-pass
            self._items = iter(self.ds)
        try:
            return next(self._items)
        except StopIteration:
            if not self.ds._ziggurat_delivered:
                raise _empty("begun again to fill a pass", self.ds) from None
        self._items = iter(self.ds)
        return self._next()


class _RepeatedBulk(Bulk):
    def __init__(self, flow: RepeatedData) -> None:
        flow.begin_rounds()
        self._flow = flow
        self._reader = self._next_reader()
        self.fresh = self._reader is not None and self._reader.fresh

    def points(self, count: int) -> list[Datapoint]:
        points: list[Datapoint] = []
        while self._reader is not None:
            points += self._reader.take(count - len(points))
            if len(points) == count:
                break
            self._reader.close()
            self._flow.end_round()
            self._reader = self._next_reader()
        return points

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _next_reader(self) -> Reader | None:
        return self._flow.ds._ziggurat_read() if self._flow.more_rounds() else None


def _empty(purpose: str, ds: DataFlow) -> DataError:
    return DataError(
        f"The {type(ds).__name__} that is {purpose} had no datapoints in a pass.",
        advice="Look at what the stages before it drop.",
    )
