"""Inputs of one pass of a parallel map: read position, finished inputs, and the position to resume from.

The stage reads inputs ahead of what it has delivered. To be resumable, it records the child's state at intervals: a
*mark*. A position consists of the newest mark that is not ahead of the oldest unfinished input, and the number of
inputs to skip from there, unmapped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.parallel.checkpoint_interval import CheckpointInterval

__all__ = ["Input", "InputWindow", "Position"]


class Input(NamedTuple):
    """One datapoint to map.

    Args:
        number: counted from the start of the line.
        place: its number in the child's pass.
        point: the datapoint.
    """

    number: int
    place: int
    point: Datapoint


class Position(NamedTuple):
    """Where a pass stands.

    Args:
        child: state of the child.
        skip: how many of its next inputs are finished.
        done: numbers, counted from the child's state, of inputs beyond these that are finished too.
    """

    child: Any
    skip: int
    done: list[int]


class InputWindow:
    """Reads one pass of ``ds``, or goes on in it.

    Args:
        ds: the child.
        skip: how many inputs to pass over.
        done: numbers of further ones to pass over.
    """

    def __init__(self, ds: DataFlow, skip: int = 0, done: Collection[int] = ()) -> None:
        self._ds = ds
        self._items: Iterator[Datapoint] = iter(ds)
        self._marks: deque[tuple[int, Any]] = deque([(0, ds._ziggurat_state())])
        self._due = CheckpointInterval()
        self._read = 0
        self._finished = skip
        self._ahead = set(done)
        self._to_pass_over = set(done)
        self._skip = skip
        self.ended = False
        self.error: Exception | None = None
        """What the child raised; it is for the consumer after all inputs before it."""

    def pull(self, count: int) -> list[Input]:
        """Return the next inputs, at most ``count``; fewer only at the end of the pass."""
        inputs: list[Input] = []
        ds = self._ds
        while len(inputs) < count and not self.ended:
            if self._due.is_due(self._read):
                self._marks.append((self._read, ds._ziggurat_state()))
            try:
                point = next(self._items)
            except StopIteration:
                self.ended = True
                break
            except Exception as error:
                self.ended, self.error = True, error
                break
            number = self._read
            self._read += 1
            if number >= self._skip and number not in self._to_pass_over:
                inputs.append(Input(number, ds._ziggurat_delivered - 1, point))
        return inputs

    def finish(self, number: int) -> None:
        """Record that the result of input ``number`` reached the consumer."""
        if number != self._finished:
            self._ahead.add(number)
            return
        self._finished += 1
        while self._ahead and self._finished in self._ahead:
            self._ahead.discard(self._finished)
            self._finished += 1
        while len(self._marks) > 1 and self._marks[1][0] <= self._finished:
            self._marks.popleft()

    def position(self) -> Position:
        """Return where the pass stands."""
        number, state = self._marks[0]
        return Position(state, self._finished - number, sorted(each - number for each in self._ahead))

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()
