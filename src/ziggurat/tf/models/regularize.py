"""Regularization: costs of the trainable variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf import logger
from ziggurat.tf.tower import get_current_tower_context

__all__ = ["l1_regularizer", "l2_regularizer", "regularize_cost", "regularize_cost_from_collection"]


def l2_regularizer(scale: float) -> Callable[[Any], Any]:
    """Return the function w → scale · ½ · Σ w², for ``regularize_cost`` and ``kernel_regularizer``."""

    def l2_cost(weights: Any) -> Any:
        with tf.name_scope("l2_regularizer"):
            return tf.multiply(tf.cast(scale, weights.dtype.base_dtype), tf.nn.l2_loss(weights))

    return l2_cost


def l1_regularizer(scale: float) -> Callable[[Any], Any]:
    """Return the function w → scale · Σ |w|, for ``regularize_cost`` and ``kernel_regularizer``."""

    def l1_cost(weights: Any) -> Any:
        with tf.name_scope("l1_regularizer"):
            return tf.multiply(tf.cast(scale, weights.dtype.base_dtype), tf.reduce_sum(tf.abs(weights)))

    return l1_cost


def regularize_cost(regex: str, func: Callable[[Any], Any], name: str = "regularize_cost") -> Any:
    """Return the sum of a function of the trainable variables whose names match; 0 where the tower is not trained.

    Of a tower with variables of its own, only these count.

    Args:
        regex: searched for anywhere in the name, as in ``fc.*/W``.
        func: variable → single number, such as ``l2_regularizer(1e-4)``.
        name: of the result.
    """
    context = get_current_tower_context()
    if context is not None and not context.is_training:
        return tf.zeros([], name=f"empty_{name}")
    if context is not None and context.has_own_variables:
        variables = context.get_collection_in_tower(tf.GraphKeys.TRAINABLE_VARIABLES)
    else:
        variables = tf.trainable_variables()
    chosen = [variable for variable in variables if re.search(regex, variable.op.name)]
    with tf.name_scope(f"{name}_internals"):
        costs = [func(variable) for variable in chosen]
    return _summed(costs, name, f"{len(chosen)} variables that match `{regex}`")


def regularize_cost_from_collection(name: str = "regularize_cost") -> Any:
    """Return the sum of ``REGULARIZATION_LOSSES``; 0 where the tower is not trained, or there are none.

    Layers put them there, by their arguments ``kernel_regularizer`` and the like; those of other libraries too. Of a
    tower with variables of its own, only those that it added count.

    Args:
        name: of the result.
    """
    context = get_current_tower_context()
    if context is not None and not context.is_training:
        return tf.zeros([], name=f"empty_{name}")
    key = tf.GraphKeys.REGULARIZATION_LOSSES
    has_own = context is not None and context.has_own_variables
    costs = context.get_collection_in_tower(key) if context is not None and has_own else tf.get_collection(key)
    return _summed(costs, name, f"{len(costs)} tensors of REGULARIZATION_LOSSES")


def _summed(costs: list[Any], name: str, text: str) -> Any:
    logger.info("%s: %s.", name, text)
    if not costs:
        return tf.zeros([], name=f"empty_{name}")
    return tf.identity(exact_sum(costs), name=name)
