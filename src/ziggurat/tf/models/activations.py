"""Activations with parameters or shapes of their own, and the joining of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.models.arguments import channels_of
from ziggurat.tf.models.registry import VariableHolder, layer_register

__all__ = ["ConcatWith", "Maxout", "PReLU"]


@layer_register(use_scope=None)
def PReLU(x: Any, init: float = 0.001, name: str | None = None) -> Any:  # noqa: N802 - Tensorpack's name
    """Multiply negative values by a learned slope, one for the layer.

    Source: He et al., "Delving Deep into Rectifiers" (2015). Variable: ``alpha``, a single number.

    Args:
        x: any shape.
        init: first value of the slope.
        name: of the operation, where the layer has no name.
    """
    slope = tf.get_variable("alpha", [], x.dtype, tf.constant_initializer(init))
    result = tf.add(tf.nn.relu(x), slope * tf.minimum(x, 0), name=name or "prelu")
    result.variables = VariableHolder(alpha=slope)
    return result


@layer_register(use_scope=None)
def Maxout(x: Any, num_unit: int) -> Any:  # noqa: N802 - Tensorpack's name
    """Take the largest of each ``num_unit`` neighboring channels.

    Source: Goodfellow et al., "Maxout Networks" (2013).

    Args:
        x: (N, C) or (N, H, W, C).
        num_unit: channels of which one is kept, a divisor of C.

    Returns:
        (N, C / num_unit), or (N, H, W, C / num_unit).

    Raises:
        ConfigurationError: where it is no divisor, or the input has another number of axes.
    """
    if x.shape.rank not in (2, 4):
        raise ConfigurationError(
            f"`Maxout` got shape {x.shape}, not (N, C) or (N, H, W, C).", advice="Reshape other inputs."
        )
    channels = channels_of(x, -1, "Maxout")
    if num_unit < 1 or channels % num_unit:
        raise ConfigurationError(
            "`num_unit` divides the number of channels.",
            received=f"{num_unit} of {channels}",
            advice="Choose another number of channels.",
        )
    parts = tf.concat([tf.shape(x)[:-1], [channels // num_unit, num_unit]], 0)
    result = tf.reduce_max(tf.reshape(x, parts), -1)
    result.set_shape([*x.shape.as_list()[:-1], channels // num_unit])
    return result


@layer_register(use_scope=None)
def ConcatWith(x: Any, tensor: Any | Sequence[Any], dim: int) -> Any:  # noqa: N802 - Tensorpack's name
    """Join a tensor with others; for chains of ``LinearWrap``.

    Args:
        x: the tensor that comes first.
        tensor: another tensor, or a list of them.
        dim: axis along which they are joined.
    """
    others = list(tensor) if isinstance(tensor, list | tuple) else [tensor]
    return tf.concat([x, *others], dim)
