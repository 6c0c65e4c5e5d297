"""Layers of Tensorpack 0.8 that Ziggurat has no others for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError
from ziggurat.tf.models.registry import layer_register
from ziggurat.tf.varreplace import custom_getter_scope

__all__ = [
    "BilinearUpSample",
    "ImageSample",
    "LeakyReLU",
    "SoftMax",
    "rename_get_variable",
    "rename_tflayer_get_variable",
]


@layer_register(use_scope=None)
def LeakyReLU(x: Any, alpha: float, name: str = "output") -> Any:  # noqa: N802 - Tensorpack's name
    """Return the larger of each element and ``alpha`` times it.

    Args:
        x: any shape.
        alpha: in (0, 1).
        name: of the result.
    """
    return tf.maximum(x, alpha * x, name=name)


@layer_register(use_scope=None)
def SoftMax(x: Any, use_temperature: bool = False, temperature_init: float = 1.0) -> Any:  # noqa: N802
    """Return the softmax over the last axis.

    Variable: ``invtemp``, a single number: 1 / temperature.

    Args:
        x: scores, (N, classes).
        use_temperature: whether the scores are divided by a temperature that is learned.
        temperature_init: its first value.
    """
    if use_temperature:
        x = x * tf.get_variable("invtemp", initializer=1.0 / float(temperature_init))
    return tf.nn.softmax(x, name="output")


@layer_register(log_shape=True, use_scope=None)
def BilinearUpSample(x: Any, shape: int) -> Any:  # noqa: N802 - Tensorpack's name
    """Return images of ``shape`` times the height and width, by a fixed transposed convolution (as in Caffe).

    Args:
        x: (N, H, W, C), with C known.
        shape: the factor, at least 1.
    """
    shape = int(shape)
    height, width, channels = x.shape.as_list()[1:]
    size = 2 * shape
    middle = (size - 1 - shape % 2) / 2  # of an odd factor, a pixel of the result lies on each pixel of the image
    line = 1 - np.abs(np.arange(size) - middle) / shape
    kernel = np.zeros((size, size, channels, channels), np.float32)
    kernel[:, :, range(channels), range(channels)] = np.outer(line, line)[:, :, None]
    padded = tf.pad(x, [[0, 0], [shape - 1] * 2, [shape - 1] * 2, [0, 0]], mode="SYMMETRIC")
    sizes = tf.shape(padded) * [1, shape, shape, 1]
    full = tf.nn.conv2d_transpose(padded, kernel, sizes, strides=[1, shape, shape, 1], padding="SAME")
    edge = shape * (shape - 1)
    actual = tf.shape(x)
    cut = full[:, edge : edge + actual[1] * shape, edge : edge + actual[2] * shape, :]
    rows, columns = (None if each is None else each * shape for each in (height, width))
    cut.set_shape([x.shape[0], rows, columns, channels])
    return cut


@layer_register(log_shape=True, use_scope=None)
def ImageSample(  # noqa: N802 - Tensorpack's name
    inputs: Any, borderMode: Literal["repeat", "constant"] = "repeat"
) -> Any:
    """Return an image's values at other places, with weights of the four pixels around (Jaderberg et al., 2015).

    Args:
        inputs: images (N, H, W, C), and places (N, H2, W2, 2) as (y, x) in pixels.
        borderMode: what is outside of an image: its edge, or 0.
    """
    image, places = inputs
    if borderMode not in ("repeat", "constant"):
        raise UsageError(
            f"`borderMode` is {borderMode!r}, not `repeat` (the edge) or `constant` (0).",
            advice="`repeat` or `constant`.",
        )
    height, width = (tf.shape(image)[axis] for axis in (1, 2))
    last = tf.cast(tf.stack([height - 1, width - 1]), tf.float32)
    inside = places if borderMode == "constant" else tf.clip_by_value(places, 0.0, last)
    corner = tf.floor(inside)
    parts = inside - corner
    result = 0.0
    for dy in (0.0, 1.0):
        for dx in (0.0, 1.0):
            weight = tf.abs(1 - dy - parts[..., 0]) * tf.abs(1 - dx - parts[..., 1])
            result += weight[..., None] * _pixels(image, corner + [dy, dx], last)
    return tf.identity(result, name="sampled")


def _pixels(image: Any, places: Any, last: Any) -> Any:
    """Return the pixels at whole places; 0 where these are outside."""
    bounded = tf.clip_by_value(places, 0.0, last)
    is_inside = tf.reduce_all(tf.equal(bounded, places), axis=-1, keepdims=True)
    pixels = tf.gather_nd(image, tf.cast(bounded, tf.int32), batch_dims=1)
    return pixels * tf.cast(is_inside, pixels.dtype)


@contextmanager
def rename_get_variable(mapping: dict[str, str]) -> Iterator[None]:
    """Give the variables that are made inside other names.

    Args:
        mapping: last part of a name → what it is in its place.
    """

    def renamed(getter: Callable[..., Any], name: str, *arguments: Any, **options: Any) -> Any:
        scope, _, last = name.rpartition("/")
        last = mapping.get(last, last)
        return getter(f"{scope}/{last}" if scope else last, *arguments, **options)

    with custom_getter_scope(renamed):
        yield


def rename_tflayer_get_variable() -> Any:
    """Return a context in which TensorFlow's layers name their variables ``W``, ``b``, ``mean/EMA``."""
    return rename_get_variable(
        {"kernel": "W", "bias": "b", "moving_mean": "mean/EMA", "moving_variance": "variance/EMA"}
    )
