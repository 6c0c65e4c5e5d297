"""Deterministic operations of the user's namespace: dropout from seed and global step, and sums of tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.repairs import repair_slim
from ziggurat.backends.tensorflow.runtime import tf, tf2

__all__ = [
    "exact_sum",
    "layers_dropout",
    "nn_dropout",
    "slim_dropout",
]


def exact_sum(inputs: Sequence[Any], name: str | None = None) -> Any:
    """Return the sum of tensors of one shape; stands in for ``tf.add_n``.

    Args:
        inputs: one tensor or more.
        name: of the result.
    """
    terms = list(inputs)
    if not terms:
        raise ValueError("`tf.add_n` takes at least one tensor.")
    total = functools.reduce(lambda left, right: tf.add_n([left, right]), terms)
    return tf.identity(total, name=name) if len(terms) == 1 or name is not None else total


_COUNTER: Final = "ziggurat/dropout_count"
_slim = repair_slim()


def nn_dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Stand in for ``tf.nn.dropout`` of version 1: ``keep_prob`` or ``rate``, the rest scaled up."""
    if (keep_prob is None) == (rate is None):
        raise ValueError("`tf.nn.dropout` takes one of `keep_prob` and `rate`.")
    share = 1 - keep_prob if rate is None else rate
    with tf.name_scope(name, "dropout", [x]):
        return _masked(tf.convert_to_tensor(x), share, noise_shape, seed)


def layers_dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Any:
    """Stand in for ``tf.layers.dropout``."""
    with tf.name_scope(name, "dropout", [inputs]):
        return _when(training, tf.convert_to_tensor(inputs), rate, noise_shape, seed)


@_slim.add_arg_scope
def slim_dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Any:
    """Stand in for ``slim.dropout`` and ``tf.contrib.layers.dropout``."""
    with tf.variable_scope(scope, "Dropout", [inputs]) as entered:
        outputs = _when(is_training, tf.convert_to_tensor(inputs), 1 - keep_prob, noise_shape, seed)
        return _slim.utils.collect_named_outputs(outputs_collections, entered.name, outputs)


def _when(training: Any, inputs: Any, rate: Any, noise_shape: Any, seed: int | None) -> Any:
    if isinstance(training, bool | int):
        return _masked(inputs, rate, noise_shape, seed) if training else tf.identity(inputs)
    return tf.cond(
        tf.cast(training, tf.bool),
        lambda: _masked(inputs, rate, noise_shape, seed),
        lambda: tf.identity(inputs),
    )


def _masked(inputs: Any, rate: Any, noise_shape: Any, seed: int | None) -> Any:
    if tf.executing_eagerly():
        return tf2.nn.experimental.stateless_dropout(inputs, rate=rate, seed=[seed or 0, 0], noise_shape=noise_shape)
    graph = tf.get_default_graph()
    # Operations are numbered in the order in which the network makes them: the same code gives the same masks.
    count = len(graph.get_collection_ref(_COUNTER))
    graph.add_to_collection(_COUNTER, count)
    mixed = ((graph.seed or 0) * 1_000_003 + (seed or 0) * 7_919 + count) & 0x7FFFFFFF
    step = tf.train.get_or_create_global_step(graph)
    place = tf.stack([tf.constant(mixed, tf.int64), tf.cast(step, tf.int64)])
    return tf2.nn.experimental.stateless_dropout(inputs, rate=rate, seed=place, noise_shape=noise_shape)
