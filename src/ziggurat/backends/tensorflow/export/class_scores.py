"""Class scores of a classifier: logits where the graph shows them, else log probabilities."""

from __future__ import annotations

from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["class_scores"]

_SAME: Final = frozenset({"Identity", "Reshape", "Squeeze", "Cast", "CheckNumerics"})
"""Operations that leave the numbers of a classifier as they are."""

_SHARES: Final = frozenset({"Softmax", "Sigmoid"})
_MIXING: Final = frozenset({"AddN", "Add", "AddV2", "Mean", "Sum", "Mul", "RealDiv", "ConcatV2", "Pack", "Unpack"})
_LEAST: Final = 1e-30
"""No probability is less where its logarithm is taken."""


def class_scores(output: Any, classes: int) -> Any:
    """Return a tensor (N, classes) float32: logits, or else the logarithms of probabilities.

    Args:
        output: of the network, (N, classes). Ziggurat takes it for logits; a network that ends with a softmax or
            sigmoid gives what that is made of, and one that averages those of several heads gives probabilities.
        classes: how many there are.
    """
    last = _before_same(output)
    if last.op.type in (*_SHARES, "LogSoftmax"):
        source = last.op.inputs[0]
        output = tf.reshape(source, [-1, classes]) if source.shape.rank != 2 else source
    elif _is_mixture_of_shares(last):
        output = tf.log(tf.maximum(tf.cast(output, tf.float32), _LEAST))
    return tf.cast(output, tf.float32)


def _before_same(tensor: Any) -> Any:
    while tensor.op.type in _SAME:
        tensor = tensor.op.inputs[0]
    return tensor


def _is_mixture_of_shares(tensor: Any) -> bool:
    """Return whether a tensor is made of softmaxes and numbers alone by sums, means and products."""
    waiting, shares, seen = [tensor], 0, set[str]()
    while waiting:
        each = _before_same(waiting.pop())
        if each.op.name in seen:
            continue
        seen.add(each.op.name)
        if each.op.type in _SHARES:
            shares += 1
        elif each.op.type in _MIXING:
            waiting.extend(each.op.inputs)
        elif each.op.type != "Const":
            return False
    return shares > 0
