"""Input sources that prepare batches ahead in a thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ziggurat.engine.feed import BatchCycle, Feed, QueueFeed
from ziggurat.tf.inputs.base import FlowInput

__all__ = ["QueueInput"]


class QueueInput(FlowInput):
    """Lets a thread prepare batches while the steps before them run.

    Args:
        ds: the batches.
        capacity: batches that are ready at most.
    """

    def __init__(self, ds: Iterable[Any], capacity: int = 50) -> None:
        super().__init__(ds)
        self._capacity = capacity

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed: a thread and its bounded queue."""
        return QueueFeed(batches, self._capacity)
