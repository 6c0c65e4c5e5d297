"""Owns the division of one pass between several workers that all run the same flow.

Every worker runs the whole flow, and computes only its own datapoints: number ``k`` belongs to worker ``k % workers``.
A stage that can pass over a datapoint without computing it says so with one optional method::

    def take_share(self, share):
        self._share = share
        share.offer(self.ds)

and then yields ``share.NOT_MINE`` in the place of each datapoint that ``share.owns(number)`` denies, where ``number``
is its number in the pass of this stage (``self.delivered`` before the yield). Places are kept, so positions, random
numbers and states are those of a serial pass. Where a place would vanish (a map function returned None), the stage
calls ``share.dropped()`` first: the numbers of all later datapoints depend on it, so the division ends, and every
pass is run by one worker from there on. So it is from the start where the last stage has no such method, or returns
False, which says that there is nothing to gain: a batch stage does so where its child takes no part
(``share.offer(self.ds, block=self.batch_size)`` returned None).

A stage whose numbers are not those of its child sets ``offset`` of what ``offer()`` returned before it pulls, so that
(number in the child's pass + offset) // block is its own number. ``RepeatedData``: ``part.offset = self.delivered``
where a new pass of the child begins.
"""

from __future__ import annotations

from typing import Any, Final

from ziggurat.dataflow.base import DataFlow

__all__ = ["NOT_MINE", "Share", "ShareBrokenError", "can_share"]


class _Mark:
    def __repr__(self) -> str:
        return "NOT_MINE"

    def __reduce__(self) -> str:
        return "NOT_MINE"


NOT_MINE: Final = _Mark()
"""Stands in the place of a datapoint that another worker computes."""


class ShareBrokenError(Exception):
    """A place vanished, so the workers cannot know any more which datapoints are theirs."""


class Share:
    """What one worker computes of the pass of one stage.

    Args:
        worker: number of this worker, from 0.
        workers: how many divide the pass.
    """

    NOT_MINE: Final = NOT_MINE

    def __init__(self, worker: int, workers: int) -> None:
        self.worker = worker
        self.workers = workers
        self.whole = False
        self.offset = 0
        self._parent: Share | None = None
        self._block = 1

    def owns(self, number: int) -> bool:
        """Tell whether this worker computes datapoint ``number`` of the stage's pass."""
        place = (number + self.offset) // self._block
        if self._parent is not None:
            return self._parent.owns(place)
        return self.whole or (place >= 0 and place % self.workers == self.worker)

    def offer(self, flow: DataFlow, *, block: int = 1) -> Share | None:
        """Let ``flow`` skip what is not this worker's.

        Args:
            flow: the child of the stage that has this share.
            block: how many datapoints of the child make one of the stage.

        Returns:
            What the child got; None where it has no use for it, and yields every datapoint.
        """
        if not can_share(flow):
            return None
        part = Share(self.worker, self.workers)
        part._parent, part._block = self, block
        stage: Any = flow
        return None if stage.take_share(part) is False else part

    def dropped(self) -> None:
        """Say that a datapoint vanishes from the pass.

        Raises:
            ShareBrokenError: unless this worker computes everything anyway.
        """
        root = self
        while root._parent is not None:
            root = root._parent
        if not root.whole:
            raise ShareBrokenError


def can_share(flow: DataFlow) -> bool:
    """Tell whether ``flow`` knows shares, and runs no ``iterate()`` of a subclass that does not."""
    for cls in type(flow).__mro__:
        if "take_share" in vars(cls):
            return True
        if "iterate" in vars(cls):
            return False
    return False
