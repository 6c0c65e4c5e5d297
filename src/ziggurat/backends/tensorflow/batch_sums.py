"""Sums over a batch whose rows lie in several towers: what a loss is divided by that counts other things than rows.

The towers of a graph are built one after another, so the first one asks for a sum whose other terms are not there yet.
It gets a tensor that waits: when the last tower has given its term, the inputs of all these tensors are replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["BatchSums", "Exchange", "Weight", "noting_weights", "share_of_batch"]

_TINY: Final = 1e-12
"""Divisor of a loss whose weights add up to 0: the loss is 0, too."""


@dataclass(frozen=True)
class Weight:
    """Weight of a loss of some rows: what it is divided by, if that is not their number.

    Args:
        total: scalar tensor, the sum of the weights; of several towers, the mean of their sums.
        divisor: scalar tensor above 0, what the loss is divided by.
        at_least: smallest divisor of a batch; 0 for none.
    """

    total: Any
    divisor: Any
    at_least: float


_noted: list[list[Weight]] = []


@contextmanager
def noting_weights() -> Iterator[list[Weight]]:
    """Give the weights of the losses that are built inside, in their order."""
    _noted.append([])
    try:
        yield _noted[-1]
    finally:
        _noted.pop()


@dataclass
class Exchange:
    """What the towers have given to one mean so far: number of the tower → its term, and the tensor that waits."""

    terms: dict[int, Any] = field(default_factory=dict)
    waiting: list[Any] = field(default_factory=list)

    def give(self, term: Any, index: int) -> Any:
        """Take the term of a tower; return the tensor that becomes the mean."""
        placeholder = tf.placeholder(term.dtype, term.shape, name="waits_for_all_towers")
        waiting = tf.identity(placeholder, name="mean_over_towers")
        self.terms[index] = term
        self.waiting.append(waiting)
        return waiting

    def connect(self, total: int) -> None:
        """Make the tensors that wait the mean."""
        with tf.control_dependencies(None):
            mean = exact_sum([self.terms[index] for index in sorted(self.terms)]) / total
        for each in self.waiting:
            each.op._update_input(0, mean)


class BatchSums:
    """The sums of a batch over the towers that share it.

    Args:
        towers: how many there are; their parts have equally many rows.
    """

    def __init__(self, towers: int) -> None:
        self.towers = towers
        self._exchanges: defaultdict[int, Exchange] = defaultdict(Exchange)
        self._number = 0
        self._turn = 0

    @contextmanager
    def tower(self, number: int) -> Iterator[None]:
        """Let losses inside be of a tower."""
        self._number, self._turn = number, 0
        _batches.append(self if self.towers > 1 else None)
        try:
            yield
        finally:
            _batches.pop()

    def mean(self, term: Any) -> Any:
        """Take a term of this tower; return the tensor that becomes the mean over the towers.

        The terms of a tower's first, second, … call belong together.
        """
        exchange = self._exchanges[self._turn]
        self._turn += 1
        return exchange.give(term, self._number)

    def connect(self) -> None:
        """Connect what waits, once all towers are built."""
        for each in self._exchanges.values():
            each.connect(len(each.terms))


_batches: list[BatchSums | None] = [None]


def share_of_batch(total: Any, at_least: float = 0.0) -> Any:
    """Return what a loss over some rows of a batch is divided by, so that the batch's loss is the mean of the towers'.

    Each tower's loss counts the same. One that is divided by something else than rows, as objects, pixels that count or
    weights of classes, is therefore divided by the mean of that over the towers. Alone, that is the sum itself. A loss
    inside a branch or loop of the graph cannot wait for others, and is divided by its own sum.

    Args:
        total: scalar tensor, the sum over the rows of this tower; no gradient flows through it.
        at_least: what the sum over the batch counts for where it is less; 0 for a tiny number.
    """
    batch, share = _batches[-1], 1.0
    is_fetchable = total.op._get_control_flow_context() is None
    if batch is not None and is_fetchable:
        total, share = batch.mean(tf.stop_gradient(total)), 1.0 / batch.towers
    divisor = tf.maximum(total, (at_least or _TINY) * share)
    if _noted and is_fetchable and total.graph is tf.get_default_graph():
        _noted[-1].append(Weight(total, divisor, at_least * share))
    return divisor
