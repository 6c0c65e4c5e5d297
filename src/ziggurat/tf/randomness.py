"""Random operations that a training resumes exactly: their numbers follow from a seed and a count, not from a kernel.

TensorFlow's random operations keep their generators where nothing can read them, so a resumed training would draw other
numbers. Here each such operation of a step gets a stateless one in its place, whose seed is that of the graph and the
operation, and a number that grows with every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf, tf2

__all__ = ["ancestors", "make_resumable", "random_operations"]


def _uniform(op: Any, seed: Any) -> Any:
    return tf2.random.stateless_uniform(op.inputs[0], seed, dtype=op.outputs[0].dtype)


def _uniform_int(op: Any, seed: Any) -> Any:
    shape, low, high = op.inputs
    return tf2.random.stateless_uniform(shape, seed, minval=low, maxval=high, dtype=op.outputs[0].dtype)


def _normal(op: Any, seed: Any) -> Any:
    return tf2.random.stateless_normal(op.inputs[0], seed, dtype=op.outputs[0].dtype)


def _truncated(op: Any, seed: Any) -> Any:
    return tf2.random.stateless_truncated_normal(op.inputs[0], seed, dtype=op.outputs[0].dtype)


def _categorical(op: Any, seed: Any) -> Any:
    logits, count = op.inputs
    return tf2.random.stateless_categorical(logits, count, seed, dtype=op.outputs[0].dtype)


def _shuffle(op: Any, seed: Any) -> Any:
    return tf2.random.experimental.stateless_shuffle(op.inputs[0], seed)


_STATELESS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "RandomUniform": _uniform,
    "RandomUniformInt": _uniform_int,
    "RandomStandardNormal": _normal,
    "TruncatedNormal": _truncated,
    "Multinomial": _categorical,
    "RandomShuffle": _shuffle,
}


def ancestors(targets: Iterable[Any]) -> set[Any]:
    """Return the operations that some operations need, themselves included."""
    found: set[Any] = set()
    waiting = [each.op if isinstance(each, tf.Tensor) else each for each in targets]
    while waiting:
        op = waiting.pop()
        if op in found:
            continue
        found.add(op)
        waiting += [tensor.op for tensor in op.inputs]
        waiting += op.control_inputs
    return found


def random_operations(graph: Any, step: Iterable[Any] | None, left_out: Sequence[str]) -> list[Any]:
    """Return the random operations of a step that can be made stateless, in the order in which they were made.

    Args:
        graph: the graph.
        step: operations of the step; None where any operation may belong to it.
        left_out: name scopes of towers that predict.
    """
    variables = [*graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)]
    variables += graph.get_collection(tf.GraphKeys.LOCAL_VARIABLES)
    first_values = ancestors(each.initializer for each in variables)
    within = None if step is None else ancestors(step)
    prefixes = tuple(f"{scope}/" for scope in left_out if scope)
    return [
        op
        for op in graph.get_operations()
        if op.type in _STATELESS
        and op not in first_values
        and (op in within if within is not None else not op.name.startswith(prefixes or ("\0",)))
    ]


def make_resumable(operations: Sequence[Any], count: Any) -> None:
    """Put a stateless operation in place of each random one, wherever its numbers are read.

    Args:
        operations: what ``random_operations`` gave; the graph is open.
        count: tensor of one integer that is another in every step.
    """
    if not operations:
        return
    with tf.name_scope("ziggurat/random/"):
        unseeded = [op for op in operations if not (op.get_attr("seed") or op.get_attr("seed2"))]
        base: Any = 0
        if unseeded:
            # One draw for the graph; as a variable it belongs to the state, so a resumed training has it again.
            first = int(np.random.randint(1 << 31))
            with tf.variable_scope(tf.get_variable_scope(), reuse=False):
                made = tf.Variable(first, trainable=False, dtype=tf.int64, name="seed", use_resource=True)
            base = made.read_value()
        number = tf.cast(count, tf.int64)
        for place, op in enumerate(operations):
            own = op.get_attr("seed") * 1_000_003 + op.get_attr("seed2")
            _replace(op, base if op in unseeded else own, place, number)


def _replace(op: Any, seed: Any, place: int, number: Any) -> None:
    context = op._get_control_flow_context()
    if context is not None:  # inside of `tf.cond` and `tf.while_loop`: the new one runs there as well
        context.Enter()
    try:
        pair = tf.stack([tf.cast(seed, tf.int64) + 7_919 * place, number])
        new = _STATELESS[op.type](op, pair)
    finally:
        if context is not None:
            context.Exit()
    for reader in list(op.outputs[0].consumers()):
        for port, tensor in enumerate(reader.inputs):
            if tensor is op.outputs[0]:
                reader._update_input(port, new)
