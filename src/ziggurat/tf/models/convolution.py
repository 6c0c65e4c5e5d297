"""Convolutions in two dimensions, plain, grouped, dilated and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.models.arguments import (
    ACTIVATION,
    INITIALIZERS,
    ZEROS,
    activated,
    add_activity_loss,
    channels_of,
    check_float,
    default_kernel_initializer,
    padding_name,
    pair,
    plain_data_format,
    to_channels_last,
)
from ziggurat.tf.models.registry import VariableHolder, layer_register, older_arguments, register_alias

__all__ = ["Conv2D", "Conv2DTranspose", "Deconv2D"]

_OLDER = {"out_channel": "filters", "kernel_shape": "kernel_size", "stride": "strides", **ACTIVATION, **INITIALIZERS}


@layer_register(log_shape=True)
@older_arguments(**_OLDER)
def Conv2D(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = (1, 1),
    padding: str = "same",
    data_format: str = "channels_last",
    dilation_rate: int | Sequence[int] = (1, 1),
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    split: int = 1,
) -> Any:
    """Convolve images: ``Conv2D(name, inputs, filters, kernel_size, ...)``.

    Variables: ``W`` (height, width, C / split, filters) and ``b`` (filters,).

    Args:
        inputs: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        filters: number of channels that come out.
        kernel_size: height and width; one number for both.
        strides: height and width.
        padding: ``same`` or ``valid``, in either case.
        data_format: ``channels_last`` or ``channels_first``.
        dilation_rate: height and width.
        activation: function of the result; None for none.
        use_bias: whether to add ``b``.
        kernel_initializer: of ``W``; variance scaling by 2 where it is None.
        bias_initializer: of ``b``.
        kernel_regularizer: function of ``W``; what it returns goes into ``REGULARIZATION_LOSSES``.
        bias_regularizer: function of ``b``, likewise.
        activity_regularizer: function of the result, likewise.
        split: groups of channels that are convolved apart; it divides C and ``filters``.

    Returns:
        (N, H', W', filters), or (N, filters, H', W').

    Raises:
        ConfigurationError: where a size does not fit, or both strides and dilation are above 1.
    """
    if isinstance(strides, str):  # the order of Tensorpack 0.8: padding, stride
        strides, padding = (1 if isinstance(padding, str) else padding), strides
    filters = _number_of(filters)
    form = plain_data_format(data_format)
    check_float(inputs, "Conv2D")
    channels = channels_of(inputs, 3 if form == "NHWC" else 1, "Conv2D")
    size, steps, dilation = (
        pair(kernel_size, "kernel_size"),
        pair(strides, "strides"),
        pair(dilation_rate, "dilation_rate"),
    )
    _check_convolution(channels, filters, split, steps, dilation)
    kernel = tf.get_variable(
        "W",
        [*size, channels // split, filters],
        dtype=inputs.dtype,
        initializer=kernel_initializer or default_kernel_initializer(),
        regularizer=kernel_regularizer,
    )
    bias = _bias(inputs, filters, bias_initializer, bias_regularizer) if use_bias else None
    x, is_turned = to_channels_last(inputs, form)
    place = "NHWC" if is_turned else form
    groups = [x] if split == 1 else tf.split(x, split, 3 if place == "NHWC" else 1)
    kernels = [kernel] if split == 1 else tf.split(kernel, split, 3)
    parts = [
        _convolved(group, weights, steps, padding_name(padding), dilation, place)
        for group, weights in zip(groups, kernels, strict=True)
    ]
    result = parts[0] if split == 1 else tf.concat(parts, 3 if place == "NHWC" else 1)
    return _finished(result, kernel, bias, place, is_turned, activation, activity_regularizer)


@layer_register(log_shape=True)
@older_arguments(**_OLDER)
def Conv2DTranspose(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int | Sequence[int] = (1, 1),
    padding: str = "same",
    data_format: str = "channels_last",
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
) -> Any:
    """Enlarge images by the transpose of a convolution: ``Conv2DTranspose(name, inputs, filters, kernel_size, ...)``.

    Variables: ``W`` (height, width, filters, C) and ``b`` (filters,). ``Deconv2D`` is the same.

    Args:
        inputs: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        filters: number of channels that come out.
        kernel_size: height and width; one number for both.
        strides: factor of the enlargement, height and width.
        padding: ``same``: H' = H · stride; ``valid``: H' = H · stride + max(kernel − stride, 0).
        data_format: ``channels_last`` or ``channels_first``.
        activation: function of the result; None for none.
        use_bias: whether to add ``b``.
        kernel_initializer: of ``W``; variance scaling by 2 where it is None.
        bias_initializer: of ``b``.
        kernel_regularizer: function of ``W``; what it returns goes into ``REGULARIZATION_LOSSES``.
        bias_regularizer: function of ``b``, likewise.
        activity_regularizer: function of the result, likewise.

    Returns:
        (N, H', W', filters), or (N, filters, H', W').

    Raises:
        ConfigurationError: where a size does not fit.
    """
    filters = _number_of(filters)
    form = plain_data_format(data_format)
    check_float(inputs, "Conv2DTranspose")
    channels = channels_of(inputs, 3 if form == "NHWC" else 1, "Conv2DTranspose")
    size, steps = pair(kernel_size, "kernel_size"), pair(strides, "strides")
    kernel = tf.get_variable(
        "W",
        [*size, filters, channels],
        dtype=inputs.dtype,
        initializer=kernel_initializer or default_kernel_initializer(),
        regularizer=kernel_regularizer,
    )
    bias = _bias(inputs, filters, bias_initializer, bias_regularizer) if use_bias else None
    x, is_turned = to_channels_last(inputs, form)
    place = "NHWC" if is_turned else form
    mode = padding_name(padding)
    known, dynamic = _enlarged_shape(x, filters, size, steps, mode, place)
    step = [1, *steps, 1] if place == "NHWC" else [1, 1, *steps]
    result = tf.nn.conv2d_transpose(x, kernel, dynamic, strides=step, padding=mode, data_format=place)
    result.set_shape(known)
    return _finished(result, kernel, bias, place, is_turned, activation, activity_regularizer)


Deconv2D = Conv2DTranspose
register_alias("Deconv2D", Deconv2D)


def _number_of(filters: Any) -> Any:
    """Return the number of filters; Tensorpack 0.8 took the whole shape, and floats are whole numbers in programs."""
    number = filters[-1] if isinstance(filters, list | tuple) else filters
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _check_convolution(channels: int, filters: int, split: int, steps: Sequence[int], dilation: Sequence[int]) -> None:
    if channels % split or filters % split:
        raise ConfigurationError(
            "`split` divides the channels that come in and go out.",
            received=f"split={split} for {channels} and {filters} channels",
            advice="Choose another number of groups or filters.",
        )
    if max(steps) > 1 and max(dilation) > 1:
        raise ConfigurationError(
            "A convolution has strides or a dilation.",
            received=f"strides {tuple(steps)} and dilation_rate {tuple(dilation)}",
            advice="Set one of them to 1.",
        )


def _convolved(
    x: Any, kernel: Any, steps: Sequence[int], padding: str, dilation: Sequence[int], data_format: str
) -> Any:
    if max(dilation) > 1:
        # By space-to-batch: the direct operation has no gradient on a processor.
        return tf.nn.convolution(x, kernel, padding, dilation_rate=dilation, data_format=data_format)
    step = [1, *steps, 1] if data_format == "NHWC" else [1, 1, *steps]
    return tf.nn.conv2d(x, kernel, strides=step, padding=padding, data_format=data_format)


def _enlarged_shape(
    x: Any, filters: int, size: Sequence[int], steps: Sequence[int], padding: str, data_format: str
) -> tuple[list[int | None], Any]:
    """Return the shape of a transposed convolution, as far as it is known, and as a tensor or list for the step."""
    extra = [0, 0] if padding == "SAME" else [max(k - s, 0) for k, s in zip(size, steps, strict=True)]
    first = 1 if data_format == "NHWC" else 2
    given = x.shape.as_list()
    rows = [
        None if length is None else length * step + more
        for length, step, more in zip(given[first : first + 2], steps, extra, strict=True)
    ]
    known = [given[0], *rows, filters] if data_format == "NHWC" else [given[0], filters, *rows]
    if None not in known:
        return known, known
    actual = tf.shape(x)
    lengths = [actual[first + axis] * steps[axis] + extra[axis] for axis in (0, 1)]
    shape = [actual[0], *lengths, filters] if data_format == "NHWC" else [actual[0], filters, *lengths]
    return known, tf.stack(shape)


def _bias(inputs: Any, filters: int, initializer: Any, regularizer: Any) -> Any:
    return tf.get_variable("b", [filters], dtype=inputs.dtype, initializer=initializer, regularizer=regularizer)


def _finished(
    result: Any, kernel: Any, bias: Any, data_format: str, is_turned: bool, activation: Any, regularizer: Any
) -> Any:
    """Return the result with bias and activation, in the data format of the inputs, with its variables."""
    if bias is not None:
        result = tf.nn.bias_add(result, bias, data_format=data_format)
    if is_turned:
        result = tf.transpose(result, [0, 3, 1, 2])
    outputs = activated(result, activation)
    add_activity_loss(outputs, regularizer)
    outputs.variables = VariableHolder(W=kernel) if bias is None else VariableHolder(W=kernel, b=bias)
    return outputs
