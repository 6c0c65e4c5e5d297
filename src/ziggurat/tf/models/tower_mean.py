"""Means of a tensor over the towers of one graph, and over processes.

The towers of a graph are built one after another, so the first one asks for a mean whose other terms are not there
yet. It gets a tensor that waits: when the last tower has given its term, the inputs of all these tensors become the
mean. The gradient is exchanged in the same way: that of a mean over N towers is the mean of the N gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.tower import TrainTowerContext

__all__ = ["PROCESS_MEAN", "process_count", "process_mean", "tower_mean"]

PROCESS_MEAN: Final = "ziggurat/process_mean"
"""Collection in which a trainer over several processes puts a function: tensor and unique name → mean over processes.

The function has a gradient, the mean of the gradients, and an attribute ``size``, the number of processes.
"""


@dataclass
class _Exchange:
    """What the towers have given to one mean so far: number of the tower → its term, and the tensor that waits."""

    terms: dict[int, Any] = field(default_factory=dict)
    waiting: list[Any] = field(default_factory=list)


_exchanges: WeakKeyDictionary[Any, dict[tuple[str, int], _Exchange]] = WeakKeyDictionary()


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

    @tf.custom_gradient
    def mean(term: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            return _exchanged(upstream, context, f"{key}/gradient")

        return _exchanged(term, context, key), gradient

    return mean(value)


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
    return int(_process_mean_function().size)


def _process_mean_function() -> Any:
    found = tf.get_collection(PROCESS_MEAN)
    if not found:
        raise ConfigurationError(
            "Statistics are synchronized over processes by a trainer that trains in several.",
            received="a training of one process",
            advice="Use `sync_statistics='towers'` for the towers of one process, or a distributed trainer.",
        )
    return found[-1]


def _exchanged(term: Any, context: TrainTowerContext, key: str) -> Any:
    exchange = _next_exchange(context.index, key)
    placeholder = tf.placeholder(term.dtype, term.shape, name="waits_for_all_towers")
    waiting = tf.identity(placeholder, name="mean_over_towers")
    exchange.terms[context.index] = term
    exchange.waiting.append(waiting)
    if len(exchange.terms) == context.total:
        with tf.control_dependencies(None):
            mean = exact_sum([exchange.terms[index] for index in sorted(exchange.terms)]) / context.total
        for each in exchange.waiting:
            each.op._update_input(0, mean)
    return waiting


def _next_exchange(index: int, key: str) -> _Exchange:
    """Return the first exchange of a key to which this tower has not given: a layer may run more than once."""
    known = _exchanges.setdefault(tf.get_default_graph(), {})
    number = 0
    while index in known.setdefault((key, number), _Exchange()).terms:
        number += 1
    return known[key, number]
