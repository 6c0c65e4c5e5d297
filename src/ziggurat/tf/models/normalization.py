"""Normalization of each sample: over all of it, or over each channel."""

from __future__ import annotations

from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.models.arguments import ONES, ZEROS, channels_of, plain_data_format
from ziggurat.tf.models.registry import VariableHolder, layer_register, older_arguments

__all__ = ["InstanceNorm", "LayerNorm"]

_OLDER = {"use_bias": "center", "use_scale": "scale", "gamma_init": "gamma_initializer"}


@layer_register()
@older_arguments(**_OLDER)
def LayerNorm(  # noqa: N802 - Tensorpack's name
    x: Any,
    epsilon: float = 1e-5,
    *,
    center: bool = True,
    scale: bool = True,
    gamma_initializer: Any = ONES,
    data_format: str = "channels_last",
) -> Any:
    """Normalize each sample to mean 0 and variance 1, then scale and shift each channel: ``LayerNorm(name, x)``.

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016). Variables: ``gamma`` and ``beta``, (C,).

    Args:
        x: (N, C), (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        epsilon: added to the variance.
        center: whether there is a ``beta``.
        scale: whether there is a ``gamma``.
        gamma_initializer: of ``gamma``.
        data_format: ``channels_last`` or ``channels_first``.

    Raises:
        ConfigurationError: where the input has another number of axes.
    """
    rank = x.shape.rank
    if rank not in (2, 4):
        raise ConfigurationError(
            f"`LayerNorm` got shape {x.shape}, not (N, C) or images.", advice="Reshape other inputs to one of them."
        )
    is_last = rank == 2 or plain_data_format(data_format) == "NHWC"
    axes = list(range(1, rank))
    channel_axis = rank - 1 if is_last else 1
    return _normalized(x, axes, channel_axis, epsilon, center, gamma_initializer if scale else None, "LayerNorm")


@layer_register()
@older_arguments(**_OLDER)
def InstanceNorm(  # noqa: N802 - Tensorpack's name
    x: Any,
    epsilon: float = 1e-5,
    *,
    center: bool = True,
    scale: bool = True,
    gamma_initializer: Any = ONES,
    data_format: str = "channels_last",
    use_affine: bool | None = None,
) -> Any:
    """Normalize each channel of each image to mean 0 and variance 1, then scale and shift it.

    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization: The Missing Ingredient for Fast Stylization"
    (2016). Variables: ``gamma`` and ``beta``, (C,).

    Args:
        x: (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        epsilon: added to the variance.
        center: whether there is a ``beta``.
        scale: whether there is a ``gamma``.
        gamma_initializer: of ``gamma``.
        data_format: ``channels_last`` or ``channels_first``.
        use_affine: older way to set ``center`` and ``scale`` together.

    Raises:
        ConfigurationError: where the input has another number of axes.
    """
    if x.shape.rank != 4:
        raise ConfigurationError(
            f"`InstanceNorm` got shape {x.shape}, not images.", advice="Reshape it to (N, H, W, C)."
        )
    if use_affine is not None:
        center = scale = use_affine
    is_last = plain_data_format(data_format) == "NHWC"
    axes = [1, 2] if is_last else [2, 3]
    return _normalized(
        x, axes, 3 if is_last else 1, epsilon, center, gamma_initializer if scale else None, "InstanceNorm"
    )


def _normalized(
    x: Any,
    axes: list[int],
    channel_axis: int,
    epsilon: float,
    center: bool,
    gamma_initializer: Any,
    layer: str,
) -> Any:
    """Return the layer's result; without a ``gamma`` where it has no initializer."""
    channels = channels_of(x, channel_axis, layer)
    spread = [1] * x.shape.rank
    spread[channel_axis] = channels
    mean = tf.reduce_mean(x, axes, keepdims=True)
    centered = x - mean
    result = centered * tf.math.rsqrt(tf.reduce_mean(tf.square(centered), axes, keepdims=True) + epsilon)
    variables = {}
    if gamma_initializer is not None:
        variables["gamma"] = tf.get_variable("gamma", [channels], x.dtype, gamma_initializer)
        result *= tf.reshape(variables["gamma"], spread)
    if center:
        variables["beta"] = tf.get_variable("beta", [channels], x.dtype, ZEROS)
        result += tf.reshape(variables["beta"], spread)
    outputs = tf.identity(result, name="output")
    outputs.variables = VariableHolder(**variables)
    return outputs
