"""Towers that XLA compiles: what crosses the border of the compiled part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.tower import MOVING_SUMMARIES, BaseTowerContext

__all__ = ["compiled_tower"]


def compiled_tower(
    context: BaseTowerContext,
    build: Callable[..., tuple[Any, Sequence[tuple[Any, Any]]]],
    inputs: Sequence[Any],
) -> tuple[Any, list[tuple[Any, Any]]]:
    """Build a tower and its gradients for XLA; return its cost, and its (gradient, variable) pairs.

    Outside of the compiled part there are the cost, the gradients, and what ``add_moving_summary`` was given; no other
    value of the tower can be fetched. What the tower added to ``UPDATE_OPS`` runs with it, and its summaries are left
    out: XLA has no such operations. Sparse gradients become dense, which some optimizers treat otherwise.

    Args:
        context: the context of the tower, which was entered.
        build: from one tensor an input to the cost and the pairs.
        inputs: one tensor an input.
    """
    pairs: list[tuple[Any, Any]] = []
    numbers: list[Any] = []

    def computation(*tensors: Any) -> list[Any]:
        cost, found = build(*tensors)
        pairs.extend(found)
        numbers.extend(_taken(context, MOVING_SUMMARIES))
        _taken(context, tf.GraphKeys.SUMMARIES)
        values = [cost, *(gradient for gradient, _ in found), *(each.tensor for each in numbers)]
        with tf.control_dependencies(_taken(context, tf.GraphKeys.UPDATE_OPS)):
            return [tf.identity(value) for value in values]

    cost, *values = tf.xla.experimental.compile(computation, list(inputs))
    many = len(pairs)
    for entry, value in zip(numbers, values[many:], strict=True):
        tf.add_to_collection(MOVING_SUMMARIES, replace(entry, tensor=value))
    return cost, [(gradient, variable) for gradient, (_, variable) in zip(values[:many], pairs, strict=True)]


def _taken(context: BaseTowerContext, key: str) -> list[Any]:
    """Return what the tower added to a collection, and remove it."""
    found = context.get_collection_in_tower(key)
    if found:
        del tf.get_collection_ref(key)[-len(found) :]
    return found
