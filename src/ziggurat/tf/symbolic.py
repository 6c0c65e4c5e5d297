"""Small functions of tensors, for tower functions."""

from __future__ import annotations

import math
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.models.fully_connected import flattened

__all__ = [
    "accuracy",
    "batch_flatten",
    "flatten",
    "get_scalar_var",
    "huber_loss",
    "prediction_incorrect",
    "print_stat",
    "psnr",
    "rms",
]


def rms(x: Any, name: str | None = None) -> Any:
    """Return the root of the mean of the squares, a single number.

    Args:
        x: any shape, float.
        name: of the result; ``<name of x>/rms`` where it is None.
    """
    if name is not None:
        return tf.sqrt(tf.reduce_mean(tf.square(x)), name=name)
    with tf.name_scope(None):
        return tf.sqrt(tf.reduce_mean(tf.square(x)), name=f"{x.op.name}/rms")


def print_stat(x: Any, message: str | None = None) -> Any:
    """Return the tensor; whenever it is computed, its shape, mean and root mean square are printed to standard error.

    Args:
        x: any shape.
        message: printed before them; the tensor's name where it is None.
    """
    values = [tf.shape(x), tf.reduce_mean(x)]
    if x.dtype.is_floating:
        values.append(rms(x))
    with tf.control_dependencies([tf.print(message or x.op.name, *values)]):
        return tf.identity(x, name=f"print_{x.op.name.split('/')[-1]}")


def flatten(x: Any) -> Any:
    """Return all values of a tensor as one axis."""
    return tf.reshape(x, [-1])


def batch_flatten(x: Any) -> Any:
    """Return (N, D) of (N, ...).

    Raises:
        ConfigurationError: where the graph does not know D.
    """
    return flattened(x, "batch_flatten")


def prediction_incorrect(logits: Any, label: Any, topk: int = 1, name: str = "incorrect_vector") -> Any:
    """Return (N,) float32: 1 where the label is not among the highest scores, 0 where it is.

    Args:
        logits: (N, classes).
        label: (N,) numbers of classes.
        topk: how many of the highest scores count.
        name: of the result.
    """
    hits = tf.nn.in_top_k(logits, label, topk)
    return tf.cast(tf.logical_not(hits), tf.float32, name=name)


def accuracy(logits: Any, label: Any, topk: int = 1, name: str = "accuracy") -> Any:
    """Return the share of rows whose label is among the highest scores, a single number.

    Args:
        logits: (N, classes).
        label: (N,) numbers of classes.
        topk: how many of the highest scores count.
        name: of the result.
    """
    return tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, topk), tf.float32), name=name)


def huber_loss(x: Any, delta: float = 1.0, name: str = "huber_loss") -> Any:
    """Return ½x² where |x| < delta, and delta · (|x| − ½ delta) elsewhere; the shape of x.

    Args:
        x: differences, any shape, float.
        delta: where the square becomes a line.
        name: of the result.
    """
    size = tf.abs(x)
    inner = tf.minimum(size, delta)
    return tf.add(0.5 * tf.square(inner), delta * (size - inner), name=name)


def psnr(prediction: Any, ground_truth: Any, maxp: float | None = None, name: str = "psnr") -> Any:
    """Return the peak signal-to-noise ratio in decibels, a single number: 10 · log10(maxp² / mean squared error).

    Args:
        prediction: any shape, float.
        ground_truth: the same shape.
        maxp: largest possible value; 1 where it is None.
        name: of the result.
    """
    error = tf.reduce_mean(tf.math.squared_difference(prediction, ground_truth))
    peak_db = 0.0 if maxp is None else 20.0 * math.log10(maxp)
    return tf.subtract(peak_db, 10.0 / math.log(10.0) * tf.math.log(error), name=name)


def get_scalar_var(name: str, init_value: float, summary: bool = False, trainable: bool = False) -> Any:
    """Return a variable that holds a single number, such as a learning rate; ``tf.get_variable`` makes it.

    Args:
        name: of the variable.
        init_value: its first value.
        summary: log its value with each evaluation of the summaries.
        trainable: whether gradient descent changes it.
    """
    found = tf.get_variable(name, initializer=float(init_value), trainable=trainable)
    if summary:
        tf.summary.scalar(f"{name}-summary", found)
    return found
