"""Means of a tensor over the towers of one graph, and over processes.

Over towers it is an ``Exchange``. The gradient is exchanged in the same way: that of a mean over N towers is the mean
of the N gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from ziggurat.backends.tensorflow.batch_sums import Exchange
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.tower import TrainTowerContext

__all__ = ["PROCESS_MEAN", "ProcessMean", "process_count", "process_mean", "tower_mean"]

PROCESS_MEAN: Final = "ziggurat/process_mean"
"""Collection in which a trainer over several processes puts a ``ProcessMean``."""

_OF_PROCESSES: Final = "ZigguratProcessMean"
_OF_TOWERS: Final = "ZigguratTowerMean"


@dataclass
class _Exchanges:
    """The exchanges of a graph. Those that are complete are let go: their tensors would keep the graph alive."""

    begun: dict[tuple[str, int], Exchange] = field(default_factory=dict)
    given: dict[tuple[str, int], int] = field(default_factory=dict)

    asked: dict[str, tuple[TrainTowerContext, str]] = field(default_factory=dict)
    """Operation of a mean → the tower that asked for it, and its key."""

    def mean(self, term: Any, context: TrainTowerContext, key: str) -> Any:
        """Take the term of a tower; return the tensor that becomes the mean once all towers have given theirs.

        A layer may run more than once: then the terms of equal turns belong together.
        """
        turn = self.given.get((key, context.index), 0)
        self.given[key, context.index] = turn + 1
        exchange = self.begun.setdefault((key, turn), Exchange())
        found = exchange.give(term, context.index)
        if len(exchange.terms) == context.total:
            self.begun.pop((key, turn)).connect(context.total)
        return found


_exchanges: WeakKeyDictionary[Any, _Exchanges] = WeakKeyDictionary()


def tower_mean(value: Any, context: TrainTowerContext, key: str) -> Any:
    """Return the mean of a value over all training towers of the graph; every tower has to ask for it.

    Where a tower does not, the step says that a placeholder named ``waits_for_all_towers`` is not fed.

    Args:
        value: the term of this tower, float, with the same shape in all.
        context: of the tower.
        key: what the terms of different towers have in common: the name of a layer, and which of its values it is.
    """
    if context.total == 1:
        return value

    exchanges = _exchanges.setdefault(tf.get_default_graph(), _Exchanges())
    with tf.get_default_graph().gradient_override_map({"IdentityN": _OF_TOWERS}):
        # The second output only leads the gradient to the value.
        mean, _ = tf.identity_n([tf.stop_gradient(exchanges.mean(value, context, key)), value])
    exchanges.asked[mean.op.name] = context, key
    return mean


# Not by `tf.custom_gradient`: that keeps each function, and the graph with it, as long as the process lives.
@tf.RegisterGradient(_OF_TOWERS)
def _gradient_of_tower_mean(operation: Any, upstream: Any, _: Any) -> tuple[None, Any]:
    exchanges = _exchanges[operation.graph]
    context, key = exchanges.asked[operation.name]
    return None, exchanges.mean(upstream, context, f"{key}/gradient")


class ProcessMean:
    """Means of tensors over the processes of a training, with gradients: those of the means are means as well.

    All processes build the same graph, and take all means in the order in which they were built.

    Args:
        reduce: tensors and a name that tells them from others → their means over the processes, in the graph.
        size: number of processes.
    """

    def __init__(self, reduce: Callable[[Sequence[Any], str], Sequence[Any]], size: int) -> None:
        self.size = size
        self._reduce = reduce
        self._last: list[Any] = []
        self._count = 0

    def __call__(self, value: Any, key: str) -> Any:
        """Return the mean of a tensor with a static shape.

        Args:
            value: float.
            key: what it is the mean of.
        """
        with tf.get_default_graph().gradient_override_map({"IdentityN": _OF_PROCESSES}):
            # The second output only leads the gradient to the value.
            mean, _ = tf.identity_n([tf.stop_gradient(self.mean(value, key)), value])
        return mean

    def mean(self, value: Any, key: str) -> Any:
        """Return the mean without a gradient, behind all means before it."""
        self._count += 1
        with tf.control_dependencies(self._last):
            (mean,) = self._reduce([tf.identity(value)], f"{key}/{self._count}")
        self._last = [mean]
        return mean


@tf.RegisterGradient(_OF_PROCESSES)
def _gradient_of_process_mean(operation: Any, upstream: Any, _: Any) -> tuple[None, Any]:
    return None, _process_mean_function().mean(upstream, f"{operation.name}/gradient")


def process_mean(value: Any, key: str) -> Any:
    """Return the mean of a value over the processes of a distributed training.

    Raises:
        ConfigurationError: where the trainer is not one over processes.
    """
    return _process_mean_function()(value, key)


def process_count() -> int:
    """Return the number of processes over which ``process_mean`` takes a mean.

    Raises:
        ConfigurationError: where the trainer is not one over processes.
    """
    return _process_mean_function().size


def _process_mean_function() -> ProcessMean:
    found = tf.get_collection(PROCESS_MEAN)
    if not found:
        raise ConfigurationError(
            "Statistics are synchronized over processes by a trainer that trains in several.",
            received="a training of one process",
            advice="Use `sync_statistics='towers'` for the towers of one process, or a distributed trainer.",
        )
    return found[-1]
