"""Stages that buffer datapoints: local shuffling, the cache of a whole pass, and their base; states never contain data.

A buffering stage records, as its state, the state of its child at a *mark* before the oldest datapoint in its buffer.
On resume, it reads the child again from there and keeps what it needs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterator
from typing import Any, Self

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow, UnknownLengthError
from ziggurat.dataflow.flow_state import Position
from ziggurat.dataflow.random import RandomStream
from ziggurat.errors import DataError, UsageError

__all__ = ["CacheData", "Held", "HoldingFlow", "LocallyShuffleData"]


class HoldingFlow(ProxyDataFlow):
    """A stage that holds datapoints back: ``iterate()`` calls ``begin_holding()`` and reads through what it returns."""

    def __init__(self, ds: DataFlow) -> None:
        super().__init__(ds)
        self._held: Held | None = None
        self._loaded: dict[str, Any] = {}

    def begin_holding(self, *, every: int, endless: bool = False) -> tuple[Held, dict[str, Any]]:
        """Begin or go on; return the reader, and what ``held_state()`` said when the state was saved.

        Args:
            every: see ``Held``.
            endless: see ``Held``.
        """
        loaded = self._loaded if self._ziggurat_resume_index else {}
        self._held = Held(self.ds, first=loaded.get("first", 0), every=every, endless=endless)
        return self._held, loaded

    def held_state(self) -> dict[str, Any]:
        """Return what else must be remembered to know which datapoints are held, as JSON values."""
        return {}

    def stage_state(self) -> dict[str, Any]:
        """Return from which datapoint on ``ds`` is to be read again."""
        return self._loaded if self._held is None else {"first": self._held.mark()[0], **self.held_state()}

    def load_stage_state(self, state: dict[str, Any]) -> None:
        """Take back from which datapoint on ``ds`` is to be read again."""
        self._held, self._loaded = None, state

    def children_state(self) -> list[Any]:
        """Return the state of ``ds`` at the mark before the oldest datapoint that is held."""
        return super().children_state() if self._held is None else [self._held.mark()[1]]

    def close(self) -> None:
        """Let go of what is held, too."""
        if self._held is not None:
            self._held.close()
        super().close()

    def _ziggurat_begin_pass(self, position: Position) -> None:
        if not position.delivered:  # what the last pass held, if it was broken off
            self._held, self._loaded = None, {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}  # an iterator cannot go to another process


class Held:
    """Reads a flow, and holds datapoints by their number until they are deleted from ``points``.

    Args:
        ds: the flow; a pass begins, or goes on, here.
        first: number of its next datapoint.
        every: how many datapoints lie between two marks, so at most that many are read again in vain.
        endless: begin the flow anew where it ends, and count on.
    """

    def __init__(self, ds: DataFlow, *, first: int = 0, every: int = 32, endless: bool = False) -> None:
        self.points: dict[int, Datapoint] = {}
        self.count = first
        self._ds = ds
        self._every = every
        self._endless = endless
        self._marks = deque([(first, ds._ziggurat_state())])
        self._items: Iterator[Datapoint] | None = iter(ds)
        self._last_numbers: list[int] = []

    def pull(self) -> int | None:
        """Read the next datapoint and return its number; None at the end."""
        number = self.count
        if number - self._marks[-1][0] >= self._every:
            # A state may be large, so it is taken seldom; `mark()` forgets those that are no longer needed.
            self._marks.append((number, self._ds._ziggurat_state()))
            self.mark()
        if self._items is None:
            return None
        try:
            point = next(self._items)
        except StopIteration:
            if not self._endless:
                return None
            point = self._begin_again()
        self.points[number] = point
        self.count = number + 1
        return number

    def read_again(self, count: int, keep: Container[int], *, to_the_end: bool = False) -> None:
        """After resuming: read up to number ``count`` and hold those in ``keep``.

        Args:
            count: number of the datapoint that comes next.
            keep: numbers of those that are needed.
            to_the_end: the flow had no more, so it is read to its end: stages that go on from pass to pass count on it.
        """
        while self.count < count:
            number = self.pull()
            if number is None:
                raise self._other_data(f"instead of {count} or more")
            if number not in keep:
                del self.points[number]
        if to_the_end and self.pull() is not None:
            raise self._other_data(f"or more instead of {count}")

    def mark(self) -> tuple[int, Any]:
        """Return the number of the newest mark that is not after any held datapoint, and the flow's state there."""
        oldest = next(iter(self.points), self.count)  # numbers only grow
        while self._items is not None and len(self._marks) > 1 and self._marks[1][0] <= oldest:
            self._marks.popleft()
        return self._marks[0]

    def numbers(self) -> list[int]:
        """Return the numbers of the datapoints that are held, or were when it was closed."""
        return list(self.points) if self._items is not None else self._last_numbers

    def close(self) -> None:
        """Stop reading and let go of the datapoints; what ``mark()`` and ``numbers()`` return stays as it is."""
        self.mark()
        self._last_numbers = self.numbers()
        self._items = None
        self.points.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _other_data(self, than: str) -> DataError:
        return DataError(
            "A flow that is resumed has the same data as when its state was saved.",
            received=f"{self.count} datapoints from {type(self._ds).__name__} {than}",
            advice="Start its data anew.",
        )

    def _begin_again(self) -> Datapoint:
        if not self._ds._ziggurat_delivered:
            raise DataError(
                "A flow that is begun again without end has datapoints.",
                received=f"a pass of {type(self._ds).__name__} without any",
                advice="Look at what the stages before it drop.",
            )
        self._items = iter(self._ds)
        return next(self._items)


class LocallyShuffleData(HoldingFlow):
    """The datapoints of a pass in an order that is shuffled within a buffer.

    Datapoints enter the buffer at one end and leave it at the other; after every ``shuffle_interval`` that entered, the
    buffer is shuffled. A pass holds each datapoint of one pass of ``ds`` exactly ``num_reuse`` times.

    Args:
        ds: a flow.
        buffer_size: datapoints in the buffer, 1 or more (1 shuffles nothing).
        num_reuse: how often each datapoint enters the buffer.
        shuffle_interval: by default so that a third of the buffer is exchanged between two shuffles.
        endless: never end and mix passes at their borders, as in Tensorpack. The length is then unknown.

    Resuming does not need the whole pass again: about six buffers of datapoints of ``ds`` are read again, because a few
    stay that long. So place it before the stages that decode or augment.
    """

    def __init__(
        self,
        ds: DataFlow,
        buffer_size: int,
        num_reuse: int = 1,
        shuffle_interval: int | None = None,
        *,
        endless: bool = False,
    ) -> None:
        super().__init__(ds)
        if shuffle_interval is None:
            shuffle_interval = max(1, buffer_size // (3 * max(1, num_reuse)))
        for name, value in (
            ("buffer_size", buffer_size),
            ("num_reuse", num_reuse),
            ("shuffle_interval", shuffle_interval),
        ):
            if value < 1:
                raise UsageError(f"`{name}` is {value}, not 1 or more.")
        self.buffer_size = int(buffer_size)
        self.num_reuse = int(num_reuse)
        self.shuffle_interval = int(shuffle_interval)
        self.endless = endless
        self._total: int | None = None

    def __len__(self) -> int:
        if self.endless:
            raise UnknownLengthError(self)
        return len(self.ds) * self.num_reuse

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the datapoints in their new order."""
        held, loaded = self.begin_holding(every=max(1, self.buffer_size // 4), endless=self.endless)
        self._total = loaded.get("total")
        order = _Order(self, self._ziggurat_stream("shuffle"), start=held.count)
        with held:
            leaving = self._caught_up(order, held)
            while True:
                for number in leaving:
                    if order.leaves_for_good(number):
                        yield held.points.pop(number)
                    else:
                        yield held.points[number]
                if self._total is not None:
                    return
                if held.pull() is None:
                    self._total = held.count
                    leaving = order.rest()
                else:
                    leaving = order.enter()

    def held_state(self) -> dict[str, Any]:
        """Return the length of the pass, once it is known."""
        return {"total": self._total}

    def _caught_up(self, order: _Order, held: Held) -> list[int]:
        """Repeat the order up to ``resume_index`` without the data, read what is in the buffer, and return the numbers
        that leave next."""
        leaving: list[int] = []
        while order.left < self._ziggurat_resume_index:
            leaving = order.rest() if order.entered == self._total else order.enter()
        leaving = leaving[len(leaving) - (order.left - self._ziggurat_resume_index) :]
        held.read_again(order.entered, {*leaving, *order.waiting}, to_the_end=self._total is not None)
        order.copies = Counter([*leaving, *order.waiting])
        return leaving


class _Order:
    """The order in which numbers leave the buffer: it follows from seed, pass and arguments, whatever the data is.

    Args:
        stage: says the sizes and the pass.
        stream: its random numbers.
        start: how many had entered; whatever is in the buffer then leaves as -1.
    """

    def __init__(self, stage: LocallyShuffleData, stream: RandomStream, *, start: int) -> None:
        self._size = stage.buffer_size
        self._reuse = stage.num_reuse
        self._interval = stage.shuffle_interval
        self._pass_index = stage._ziggurat_pass_index
        self._stream = stream
        self.entered = start
        self.waiting = deque([-1] * min(start * self._reuse, self._size))
        self.left = start * self._reuse - len(self.waiting)
        self.copies: Counter[int] = Counter()

    def enter(self) -> list[int]:
        """Let the next number enter; return those that leave."""
        waiting, number = self.waiting, self.entered
        self.copies[number] += self._reuse
        for _ in range(self._reuse):
            waiting.append(number)
        leaving = [waiting.popleft() for _ in range(len(waiting) - self._size)]
        self.left += len(leaving)
        self.entered = number + 1
        if self.entered % self._interval == 0:
            self._shuffle(self.entered // self._interval)
        return leaving

    def rest(self) -> list[int]:
        """Let all leave."""
        # No other shuffle of the pass has this place, so the last one has random numbers of its own.
        self._shuffle(-1)
        leaving = list(self.waiting)
        self.waiting.clear()
        self.left += len(leaving)
        return leaving

    def leaves_for_good(self, number: int) -> bool:
        """Count one leaving of a number; tell whether it was the last."""
        self.copies[number] -= 1
        if self.copies[number]:
            return False
        del self.copies[number]
        return True

    def _shuffle(self, place: int) -> None:
        rng = self._stream.seek(self._pass_index, place)
        waiting = list(self.waiting)
        self.waiting = deque([waiting[index] for index in rng.permutation(len(waiting)).tolist()])


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
