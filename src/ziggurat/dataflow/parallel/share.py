"""Division of one pass among several workers that all run the same flow.

Every worker runs the whole flow, and computes only its own datapoints of the last stage: number ``k`` belongs to
worker ``k % workers``. For a datapoint of another worker, a stage may yield ``share.NOT_MINE`` in place of what it
would compute. A stage that supports this has one more method::

    def take_share(self, share):
        self._share = share                 # iterate(): `if not share.mine: yield share.NOT_MINE`
        share.offer(self.ds)

A stage that only passes datapoints on, or combines several into one, needs only ``return share.offer(self.ds)``, and
must handle ``NOT_MINE`` where it looks into datapoints: ``BatchData`` yields it in place of a batch. A return value
of False means that nothing can be skipped. ``bulk()`` returns None where the stage has a share.

Places in the pass are kept, so positions, random numbers and states are those of a serial pass. Where a place would
vanish (a map function returned None), the stage calls ``share.dropped()``: the owner of each following datapoint is
then unknown, and one worker runs the pass from there on. If the last stage has no such method, one worker runs the
pass from the start. A stage that reads ahead of what it yields, such as a shuffle buffer, must not have the method.
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
    """What one worker computes of a pass; all stages of its flow have the same one."""

    NOT_MINE: Final = NOT_MINE

    def __init__(self) -> None:
        self.mine = True
        """Whether the datapoint that is being made is this worker's."""
        self.whole = True
        """Whether all datapoints are."""

    def offer(self, flow: DataFlow) -> bool:
        """Let ``flow`` skip what is not this worker's; return False where it cannot, and yields every datapoint."""
        stage: Any = flow
        return can_share(flow) and stage._ziggurat_take_share(self) is not False

    def dropped(self) -> None:
        """Say that a datapoint vanishes from the pass.

        Raises:
            ShareBrokenError: unless this worker computes everything anyway.
        """
        if not self.whole:
            raise ShareBrokenError


def can_share(flow: DataFlow) -> bool:
    """Tell whether ``flow`` knows shares, and runs no ``iterate()`` of a subclass that does not."""
    for cls in type(flow).__mro__:
        if "_ziggurat_take_share" in vars(cls):
            return True
        if "_ziggurat_iterate" in vars(cls):
            return False
    return False
