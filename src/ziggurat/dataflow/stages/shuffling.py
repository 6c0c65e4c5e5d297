"""Shuffling within a buffer, for dataflows that only support sequential reading."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint, UnknownLengthError
from ziggurat.dataflow.random import RandomStream
from ziggurat.dataflow.stages.holding import Held, HoldingFlow
from ziggurat.errors import UsageError

__all__ = ["LocallyShuffleData"]


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
                raise UsageError(f"`{name}` is 1 or more.", received=value)
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
