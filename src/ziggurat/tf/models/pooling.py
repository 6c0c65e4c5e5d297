"""Pooling of images, and its fixed inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.models.arguments import padding_name, pair, plain_data_format, to_channels_last
from ziggurat.tf.models.registry import layer_register, older_arguments

__all__ = ["AvgPooling", "FixedUnPooling", "GlobalAvgPooling", "MaxPooling"]


@layer_register(log_shape=True)
@older_arguments(shape="pool_size", stride="strides")
def MaxPooling(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> Any:
    """Take the largest value of each window: ``MaxPooling(name, inputs, pool_size, ...)``.

    Args:
        inputs: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        pool_size: height and width of a window; one number for both.
        strides: height and width; those of the window where it is None.
        padding: ``valid`` or ``same``, in either case.
        data_format: ``channels_last`` or ``channels_first``.

    Raises:
        ConfigurationError: where an argument is none of these.
    """
    return _pooled(tf.nn.max_pool2d, inputs, pool_size, strides, padding, data_format)


@layer_register(log_shape=True)
@older_arguments(shape="pool_size", stride="strides")
def AvgPooling(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> Any:
    """Take the mean of each window, without what padding adds: ``AvgPooling(name, inputs, pool_size, ...)``.

    Args:
        inputs: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        pool_size: height and width of a window; one number for both.
        strides: height and width; those of the window where it is None.
        padding: ``valid`` or ``same``, in either case.
        data_format: ``channels_last`` or ``channels_first``.

    Raises:
        ConfigurationError: where an argument is none of these.
    """
    return _pooled(tf.nn.avg_pool2d, inputs, pool_size, strides, padding, data_format)


@layer_register(log_shape=True)
def GlobalAvgPooling(x: Any, data_format: str = "channels_last") -> Any:  # noqa: N802 - Tensorpack's name
    """Take the mean over height and width, as in Lin et al., "Network in Network" (2013).

    Args:
        x: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        data_format: ``channels_last`` or ``channels_first``.

    Returns:
        (N, C).
    """
    axes = [1, 2] if plain_data_format(data_format) == "NHWC" else [2, 3]
    return tf.reduce_mean(x, axes, name="output")


@layer_register(log_shape=True)
def FixedUnPooling(  # noqa: N802 - Tensorpack's name
    x: Any, shape: int | Sequence[int], unpool_mat: Any = None, data_format: str = "channels_last"
) -> Any:
    """Enlarge images by a fixed matrix: each value becomes a block, the value times the matrix (Kronecker product).

    Args:
        x: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        shape: height and width of a block; one number for both.
        unpool_mat: (height, width), an array or a tensor; where it is None, 1 in the first place and 0 elsewhere.
        data_format: ``channels_last`` or ``channels_first``.

    Returns:
        (N, H · height, W · width, C), or channels first.

    Raises:
        ConfigurationError: where the matrix has another shape.
    """
    height, width = pair(shape, "shape")
    is_last = plain_data_format(data_format) == "NHWC"
    if unpool_mat is None:
        unpool_mat = np.zeros((height, width), np.float32)
        unpool_mat[0, 0] = 1
    block = tf.cast(tf.convert_to_tensor(unpool_mat), x.dtype)
    if block.shape.as_list() != [height, width]:
        raise ConfigurationError(
            "`unpool_mat` has the shape of a block.",
            received=f"{block.shape} for {(height, width)}",
            advice="Give `shape` and the matrix the same height and width.",
        )
    sizes = tf.shape(x)
    rows, columns = (sizes[1], sizes[2]) if is_last else (sizes[2], sizes[3])
    if is_last:
        wide = x[:, :, None, :, None, :] * block[None, None, :, None, :, None]
        result = tf.reshape(wide, tf.stack([sizes[0], rows * height, columns * width, sizes[3]]))
    else:
        wide = x[:, :, :, None, :, None] * block[None, None, None, :, None, :]
        result = tf.reshape(wide, tf.stack([sizes[0], sizes[1], rows * height, columns * width]))
    result.set_shape(_times(x.shape.as_list(), height, width, 1 if is_last else 2))
    return result


def _times(sizes: Sequence[int | None], height: int, width: int, first: int) -> list[int | None]:
    factors = {first: height, first + 1: width}
    return [None if size is None else size * factors.get(axis, 1) for axis, size in enumerate(sizes)]


def _pooled(
    pool: Callable[..., Any],
    inputs: Any,
    pool_size: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: str,
    data_format: str,
) -> Any:
    size = pair(pool_size, "pool_size")
    steps = size if strides is None else pair(strides, "strides")
    x, is_turned = to_channels_last(inputs, plain_data_format(data_format))
    place = "NHWC" if is_turned else plain_data_format(data_format)
    result = pool(x, size, steps, padding_name(padding), data_format=place)
    return tf.identity(tf.transpose(result, [0, 3, 1, 2]) if is_turned else result, name="output")
