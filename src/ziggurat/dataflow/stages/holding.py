"""Base of stages that buffer datapoints, and their resume logic: states never contain data.

A buffering stage records, as its state, the state of its child at a *mark* before the oldest datapoint in its buffer.
On resume, it reads the child again from there and keeps what it needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from typing import Any, Self

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow
from ziggurat.dataflow.flow_state import Position
from ziggurat.errors import DataError

__all__ = ["Held", "HoldingFlow"]


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
