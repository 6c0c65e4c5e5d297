"""Fully connected layer."""

from __future__ import annotations

import math
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
    check_float,
    default_kernel_initializer,
    is_initializer,
)
from ziggurat.tf.models.registry import VariableHolder, layer_register, older_arguments, older_order

__all__ = ["FullyConnected", "flattened"]


def _is_of_0_8(behind: Sequence[Any]) -> bool:
    """Whether values behind ``units`` are in the order of Tensorpack 0.8, where initializers came first."""
    return is_initializer(behind[0]) or (len(behind) > 1 and not isinstance(behind[1], bool))


@layer_register(log_shape=True)
@older_order("kernel_initializer", "bias_initializer", "activation", "use_bias", is_older=_is_of_0_8)
@older_arguments(out_dim="units", **ACTIVATION, **INITIALIZERS)
def FullyConnected(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
) -> Any:
    """Multiply by a matrix: ``FullyConnected(name, inputs, units, ...)``.

    Variables: ``W`` (D, units) and ``b`` (units,), where D is the product of all axes but the first.

    Args:
        inputs: (N, ...); all axes but the first are flattened.
        units: numbers that come out for each row.
        activation: function of the result; None for none.
        use_bias: whether to add ``b``.
        kernel_initializer: of ``W``; variance scaling by 2 where it is None.
        bias_initializer: of ``b``.
        kernel_regularizer: function of ``W``; what it returns goes into ``REGULARIZATION_LOSSES``.
        bias_regularizer: function of ``b``, likewise.
        activity_regularizer: function of the result, likewise.

    Returns:
        (N, units).

    Raises:
        ConfigurationError: where the graph does not know D, or the inputs are whole numbers.
    """
    units = int(units)
    check_float(inputs, "FullyConnected")
    rows = flattened(inputs, "FullyConnected")
    kernel = tf.get_variable(
        "W",
        [rows.shape.as_list()[1], units],
        dtype=inputs.dtype,
        initializer=kernel_initializer or default_kernel_initializer(),
        regularizer=kernel_regularizer,
    )
    result = tf.matmul(rows, kernel)
    variables = {"W": kernel}
    if use_bias:
        variables["b"] = tf.get_variable(
            "b", [units], dtype=inputs.dtype, initializer=bias_initializer or ZEROS, regularizer=bias_regularizer
        )
        result = tf.nn.bias_add(result, variables["b"])
    outputs = activated(result, activation)
    add_activity_loss(outputs, activity_regularizer)
    outputs.variables = VariableHolder(**variables)
    return outputs


def flattened(inputs: Any, layer: str) -> Any:
    """Return (N, D) of (N, ...).

    Raises:
        ConfigurationError: where the graph does not know D.
    """
    sizes = None if inputs.shape.rank in (None, 0) else inputs.shape.as_list()[1:]
    if sizes is None or None in sizes:
        raise ConfigurationError(
            f"`{layer}` needs to know all sizes of its input but the first when the graph is built.",
            received=f"shape {inputs.shape}",
            advice="Give the input a shape, or pool it to a fixed size first, as `GlobalAvgPooling` does.",
        )
    return inputs if len(sizes) == 1 else tf.reshape(inputs, [-1, math.prod(sizes)])
