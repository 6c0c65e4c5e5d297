"""Small functions of tensors: Tensorpack's ``symbolic_functions``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf

__all__ = [
    "accuracy",
    "batch_flatten",
    "class_balanced_cross_entropy",
    "class_balanced_sigmoid_cross_entropy",
    "flatten",
    "get_scalar_var",
    "guided_relu",
    "huber_loss",
    "prediction_incorrect",
    "print_stat",
    "psnr",
    "rms",
    "saliency_map",
    "shapeless_placeholder",
]

_GUIDED: Final = "ZigguratGuidedRelu"


def prediction_incorrect(logits: Any, label: Any, topk: int = 1, name: str = "incorrect_vector") -> Any:
    """Return 1 for each sample whose label is not among the ``topk`` largest scores, else 0: (N,) float32.

    Args:
        logits: (N, classes).
        label: (N,), whole numbers.
        topk: how many scores count.
        name: of the result.
    """
    return tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, topk)), tf.float32, name=name)


def accuracy(logits: Any, label: Any, topk: int = 1, name: str = "accuracy") -> Any:
    """Return the share of samples whose label is among the ``topk`` largest scores; arguments as above."""
    return tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, topk), tf.float32), name=name)


def flatten(x: Any) -> Any:
    """Return all elements in one dimension."""
    return tf.reshape(x, [-1])


def batch_flatten(x: Any) -> Any:
    """Return (N, everything else), with the size in the static shape where it is known."""
    sizes = x.shape.as_list()[1:]
    if None in sizes:
        return tf.reshape(x, tf.stack([tf.shape(x)[0], -1]))
    return tf.reshape(x, [-1, int(np.prod(sizes))])


def print_stat(x: Any, message: str | None = None) -> Any:
    """Return a tensor that prints its shape, mean and elements to standard error when it is evaluated.

    Args:
        x: the tensor.
        message: what to call it; its name where it is None.
    """
    text = message or x.op.name
    return tf.Print(x, [tf.shape(x), tf.reduce_mean(x), rms(x), x], f"{text}: ", summarize=20)


def rms(x: Any, name: str | None = None) -> Any:
    """Return the root of the mean square of all elements."""
    return tf.sqrt(tf.reduce_mean(tf.square(x)), name=name or f"{x.op.name}_rms")


def huber_loss(x: Any, delta: float = 1, name: str = "huber_loss") -> Any:
    """Return half the square of each element below ``delta``, and a line above it (Huber, 1964)."""
    size = tf.abs(x)
    return tf.where(size < delta, tf.square(x) / 2, delta * (size - delta / 2), name=name)


def get_scalar_var(name: str, init_value: float, summary: bool = False, trainable: bool = False) -> Any:
    """Return a variable with a single number.

    Args:
        name: of the variable.
        init_value: its first value.
        summary: whether it is in the summaries of the graph.
        trainable: whether it is trained.
    """
    variable = tf.get_variable(name, initializer=float(init_value), trainable=trainable)
    if summary:
        tf.summary.scalar(f"{name}-summary", variable)
    return variable


def psnr(prediction: Any, ground_truth: Any, maxp: float | None = None, name: str = "psnr") -> Any:
    """Return the peak signal-to-noise ratio, in dB.

    Args:
        prediction: any shape.
        ground_truth: the same shape.
        maxp: largest possible value; 1 where it is None.
        name: of the result.
    """
    error = tf.reduce_mean(tf.square(prediction - ground_truth))
    return tf.multiply(10.0 / np.log(10.0), tf.math.log((maxp or 1.0) ** 2 / error), name=name)


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
