"""Small functions of tensors: Tensorpack's ``symbolic_functions``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf

__all__ = [
    "class_balanced_cross_entropy",
    "class_balanced_sigmoid_cross_entropy",
    "guided_relu",
    "saliency_map",
    "shapeless_placeholder",
]

_GUIDED: Final = "ZigguratGuidedRelu"


def shapeless_placeholder(x: Any, axis: int | Sequence[int], name: str) -> Any:
    """Return a placeholder whose default is a tensor, and whose sizes along some axes are open.

    Args:
        x: the tensor.
        axis: the axes.
        name: of the placeholder.
    """
    axes = [axis] if isinstance(axis, int) else list(axis)
    sizes = [None if number in axes else size for number, size in enumerate(x.shape.as_list())]
    return tf.placeholder_with_default(x, shape=sizes, name=name)


def class_balanced_sigmoid_cross_entropy(logits: Any, label: Any, name: str = "cross_entropy_loss") -> Any:
    """Return the mean loss of two classes whose weights are the shares of the other (Xie and Tu, 2015).

    Args:
        logits: any shape.
        label: the same shape, in [0, 1].
        name: of the result.
    """
    truth = tf.cast(label, tf.float32)
    positive = tf.reduce_sum(truth)
    negative = tf.reduce_sum(1.0 - truth)
    beta = negative / (negative + positive)
    losses = tf.nn.weighted_cross_entropy_with_logits(labels=truth, logits=logits, pos_weight=beta / (1 - beta))
    mean = tf.reduce_mean(losses * (1 - beta))
    return tf.where(tf.equal(positive, 0.0), 0.0, mean, name=name)


def class_balanced_cross_entropy(pred: Any, label: Any, name: str = "cross_entropy_loss") -> Any:
    """Return the same for probabilities in place of scores."""
    truth = tf.cast(label, tf.float32)
    positive = tf.reduce_sum(truth)
    beta = tf.reduce_sum(1.0 - truth) / tf.cast(tf.size(truth), tf.float32)
    likely = tf.clip_by_value(pred, 1e-12, 1.0 - 1e-7)
    losses = -beta * truth * tf.math.log(likely) - (1 - beta) * (1.0 - truth) * tf.math.log(1.0 - likely)
    return tf.where(tf.equal(positive, 0.0), 0.0, tf.reduce_mean(losses), name=name)


def saliency_map(output: Any, input: Any, name: str = "saliency_map") -> Any:  # noqa: A002 - Tensorpack's name
    """Return the gradient of the largest score of each sample for the input (Simonyan et al., 2013).

    Args:
        output: (N, classes).
        input: the input, of any shape.
        name: of the result.
    """
    return tf.identity(tf.gradients(tf.reduce_max(output, 1), input)[0], name=name)


@contextmanager
def guided_relu() -> Iterator[None]:
    """Let only positive gradients pass through the ReLUs that are made inside (Springenberg et al., 2014)."""
    with tf.get_default_graph().gradient_override_map({"Relu": _GUIDED}):
        yield


@tf.RegisterGradient(_GUIDED)
def _guided(op: Any, gradient: Any) -> Any:
    return tf.where((gradient > 0) & (op.outputs[0] > 0), gradient, tf.zeros_like(gradient))
