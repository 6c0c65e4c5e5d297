"""Arguments that layers have in common: sizes, data formats, activations and their older names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError

__all__ = [
    "ACTIVATION",
    "INITIALIZERS",
    "ONES",
    "ZEROS",
    "activated",
    "add_activity_loss",
    "channels_of",
    "check_float",
    "default_kernel_initializer",
    "has_gpu",
    "is_initializer",
    "padding_name",
    "pair",
    "plain_data_format",
    "to_channels_last",
]

ACTIVATION: Final = {"nl": "activation"}
"""Older name of the activation."""

INITIALIZERS: Final = {"W_init": "kernel_initializer", "b_init": "bias_initializer"}
"""Older names of the initializers."""

ZEROS: Final = tf.zeros_initializer()
"""Initializer of biases."""

ONES: Final = tf.ones_initializer()
"""Initializer of scales."""

_FORMATS: Final = {
    "channels_last": "NHWC",
    "channels_first": "NCHW",
    "NHWC": "NHWC",
    "NCHW": "NCHW",
}


def pair(value: int | Sequence[int], name: str) -> list[int]:
    """Return a size as [height, width].

    Args:
        value: one number for both, or a list or tuple of two.
        name: of the argument, for the error.

    Raises:
        ConfigurationError: where it is neither, or a number is below 1.
    """
    sizes = [value, value] if isinstance(value, int) else [] if isinstance(value, str) else list(value)
    if len(sizes) != 2 or any(int(size) < 1 for size in sizes):
        raise ConfigurationError(
            f"`{name}` is a number above 0, or two.", received=value, advice="Write `3`, or `(3, 5)` as height, width."
        )
    return [int(size) for size in sizes]


def plain_data_format(value: str) -> str:
    """Return ``NHWC`` or ``NCHW`` for either name of a data format.

    Raises:
        ConfigurationError: for another one.
    """
    if value not in _FORMATS:
        raise ConfigurationError(
            "`data_format` is channels_last or channels_first.", received=value, advice="NHWC and NCHW mean the same."
        )
    return _FORMATS[value]


def padding_name(value: str) -> str:
    """Return ``SAME`` or ``VALID`` for a padding in either case.

    Raises:
        ConfigurationError: for another one.
    """
    name = value.upper()
    if name not in ("SAME", "VALID"):
        raise ConfigurationError("`padding` is same or valid.", received=value, advice="Upper case will do too.")
    return name


def channels_of(inputs: Any, axis: int, layer: str) -> int:
    """Return the size of the channel axis.

    Raises:
        ConfigurationError: where the graph does not know it, or there is no such axis.
    """
    rank = inputs.shape.rank
    if rank is not None and axis >= rank:
        raise ConfigurationError(
            f"`{layer}` takes images, of 4 axes.",
            received=f"shape {inputs.shape}",
            advice="Add the missing axes by `tf.expand_dims`, or reshape the input.",
        )
    size = None if rank is None else inputs.shape.as_list()[axis]
    if size is None:
        raise ConfigurationError(
            f"`{layer}` needs to know the number of its input channels when the graph is built.",
            received=f"shape {inputs.shape}",
            advice="Give the input a shape, or call `set_shape` on it.",
        )
    return int(size)


def default_kernel_initializer() -> Any:
    """Return the initializer of kernels: variance scaling by 2 / fan-in, as of He et al. (2015)."""
    return tf.variance_scaling_initializer(2.0)


def is_initializer(value: Any) -> bool:
    """Return whether a value makes weights: what it is called with first is their shape."""
    try:
        return next(iter(inspect.signature(value).parameters), "") == "shape"
    except (TypeError, ValueError):  # no function, or one in C
        return False


def check_float(inputs: Any, layer: str) -> None:
    """Refuse whole numbers: weights are none.

    Raises:
        ConfigurationError: where the input is of another type.
    """
    if not inputs.dtype.is_floating:
        raise ConfigurationError(
            f"`{layer}` got {inputs.dtype.name} of shape {inputs.shape}, and computes with floating-point numbers.",
            advice="Write `tf.cast(x, tf.float32)` before it.",
        )


def activated(outputs: Any, activation: Any) -> Any:
    """Return outputs behind an activation function, as the tensor ``output`` of the layer; None for no function.

    Raises:
        ConfigurationError: where it is no function.
    """
    if activation is not None and not callable(activation):
        raise ConfigurationError(
            "`activation` is a function of a tensor, or None.", received=repr(activation), advice="Use `tf.nn.relu`."
        )
    if activation is not None and _needs_name(activation):
        named: Any = activation(outputs, name="output")
        is_output = named.op.name == f"{tf.get_default_graph().get_name_scope()}/output"
        return named if is_output else tf.identity(named, name="output")
    return tf.identity(outputs if activation is None else activation(outputs), name="output")


def _needs_name(activation: Any) -> bool:
    """Return whether a function cannot be called without the name of its result, as those of Tensorpack 0.8."""
    try:
        found = inspect.signature(activation).parameters.get("name")
    except (TypeError, ValueError):  # of a function in C
        return False
    takes = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return found is not None and found.default is inspect.Parameter.empty and found.kind in takes


def add_activity_loss(outputs: Any, regularizer: Any) -> None:
    """Add what a regularizer makes of outputs to ``REGULARIZATION_LOSSES``; None for nothing."""
    if regularizer is not None:
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, regularizer(outputs))


def to_channels_last(inputs: Any, data_format: str) -> tuple[Any, bool]:
    """Return (inputs, whether they were turned): TensorFlow computes channels first on a GPU only.

    Args:
        inputs: (N, C, H, W) or (N, H, W, C).
        data_format: ``NCHW`` or ``NHWC``; only the first is turned, and only where no GPU will compute it.
    """
    if data_format == "NHWC":
        return inputs, False
    place = tf.identity(inputs)
    if has_gpu() and "CPU" not in (place.device or "").upper():
        return inputs, False
    return tf.transpose(inputs, [0, 2, 3, 1]), True


@functools.cache
def has_gpu() -> bool:
    """Return whether TensorFlow finds a GPU; the first call decides which GPUs the process sees."""
    return bool(tf.config.list_physical_devices("GPU"))
