"""Averaged weights: a shadow of each trained variable, moved after every update and swapped in for predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.checkpoints import AVERAGES

__all__ = ["AveragedWeights", "average_weights"]


@dataclass(frozen=True, kw_only=True)
class AveragedWeights:
    """The operations on the averages of a graph.

    Args:
        start: gives each average the value of its variable.
        update: trains a step, then moves the averages.
        exchange: gives each variable the value of its average, and the average that of the variable; running it again
            puts both back, bit for bit.
    """

    start: Any
    update: Any
    exchange: Any


def average_weights(decay: float, variables: Sequence[Any], step: Any, train_op: Any) -> AveragedWeights:
    """Add an average of each variable to the graph.

    After step t it is ``average -= (1 - d) * (average - variable)`` with ``d = min(decay, (1 + t) / (10 + t))``: the
    rule of ``tf.train.ExponentialMovingAverage`` with ``num_updates``, whose smaller first decays let the averages
    leave the first weights soon. A variable that does not change has exactly itself as its average.

    Moving means and variances of batch normalization are not among the variables: they are averages already.

    Args:
        decay: d in the long run, in (0, 1).
        variables: those that are trained.
        step: the global step: t, once ``train_op`` has run.
        train_op: one step of every optimizer, on a whole batch.
    """
    pairs = [(variable, _shadow(variable)) for variable in variables if not variable.dtype.base_dtype.is_integer]
    start = tf.group(*[shadow.assign(variable.read_value(), read_value=False) for variable, shadow in pairs])
    with tf.control_dependencies([train_op]):
        count = tf.cast(step.read_value(), tf.float32)
        share = 1.0 - tf.minimum(decay, (1.0 + count) / (10.0 + count))
        moves = [
            shadow.assign_sub(
                tf.cast(share, shadow.dtype.base_dtype) * (shadow.read_value() - variable.read_value()),
                read_value=False,
            )
            for variable, shadow in pairs
        ]
        update = tf.group(*moves)
    return AveragedWeights(start=start, update=update, exchange=_exchange(pairs))


def _shadow(variable: Any) -> Any:
    with tf.variable_scope(AVERAGES.rstrip("/")), tf.device(variable.device):
        return tf.get_variable(
            variable.op.name, variable.shape, variable.dtype.base_dtype, tf.zeros_initializer(), trainable=False
        )


def _exchange(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Return the operation that exchanges both values of each pair, once all of them are read."""
    values = [(_own_value(variable), shadow.read_value()) for variable, shadow in pairs]
    with tf.control_dependencies([value for both in values for value in both]):
        return tf.group(
            *[
                operation
                for (variable, shadow), (weight, average) in zip(pairs, values, strict=True)
                for operation in (
                    variable.assign(average, read_value=False),
                    shadow.assign(weight, read_value=False),
                )
            ]
        )


def _own_value(variable: Any) -> Any:
    """Return the value of a variable in memory that writing to the variable leaves alone."""
    value = variable.read_value()
    return value if hasattr(variable, "handle") else tf.raw_ops.DeepCopy(x=value)
