"""Images with channels first on a CPU, where TensorFlow's convolutions and poolings take none."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.report import Report
from ziggurat.tf.models.arguments import has_gpu, to_channels_last

__all__ = ["channels_first_on_cpu"]

_OPERATIONS: Final = (
    ("nn", "AvgPool", "avg_pool", "value"),
    ("nn", "Conv2D", "conv2d", "input"),
    ("nn", "Conv2DBackpropInput", "conv2d_backprop_input", "out_backprop"),
    ("nn", "DepthwiseConv2dNative", "depthwise_conv2d_native", "input"),
    ("nn", "MaxPool", "max_pool", "input"),
    ("array", "DepthToSpace", "depth_to_space", "input"),
    ("array", "SpaceToDepth", "space_to_depth", "input"),
)
"""Those that a CPU computes with channels last only: part of TensorFlow, operation, function, its images."""

_BY_AXIS: Final = ("ksize", "strides", "dilations", "explicit_paddings")


@contextmanager
def channels_first_on_cpu(report: Report) -> Iterator[None]:
    """Let ``NCHW`` and ``channels_first`` work inside where no GPU computes; with one, nothing is changed.

    TensorFlow's own wrappers of the operations are replaced, and not the public functions, for the layers of
    ``tf.layers``, Keras and slim compute by them too. A gradient has the format of its operation, so that it is
    turned with it.

    Args:
        report: hears of the first operation that is turned.
    """
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for part, operation, name, images in _OPERATIONS:
            module = importlib.import_module(f"tensorflow.python.ops.gen_{part}_ops")
            function = getattr(module, name)
            replaced.append((module, name, function))
            inner = _in_groups(function) if name == "conv2d" else function
            setattr(module, name, _turned(inner, operation, images, report))
        yield
    finally:
        for module, name, function in replaced:
            setattr(module, name, function)


def _turned(function: Callable[..., Any], operation: str, images: str, report: Report) -> Callable[..., Any]:
    """Return a function that takes images (N, C, H, W), computes with (N, H, W, C) and turns the result back."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def turned(*arguments: Any, **options: Any) -> Any:
        call = signature.bind(*arguments, **options)
        call.apply_defaults()
        values = call.arguments
        if values["data_format"] not in ("NCHW", b"NCHW") or has_gpu():
            return function(*arguments, **options)
        report.adapt('data_format="NCHW"', 'computed as "NHWC": there is no GPU')
        # The result has the name that the operation would have had: programs look for tensors by name.
        with tf.name_scope(values["name"], operation) as scope:
            values[images], _ = to_channels_last(values[images], "NCHW")
            values.update({name: _axes_turned(values[name]) for name in _BY_AXIS if name in values})
            if "input_sizes" in values:
                sizes = tf.convert_to_tensor(values["input_sizes"])
                values["input_sizes"] = tf.concat([sizes[:1], sizes[2:], sizes[1:2]], 0)
            result = function(**{**values, "data_format": "NHWC", "name": None})
            return tf.transpose(result, [0, 3, 1, 2], name=scope)

    return turned


def _axes_turned(sizes: Sequence[int]) -> list[int]:
    """Return sizes for (N, H, W, C): one number an axis, two in paddings, or none at all."""
    count = len(sizes) // 4
    return [size for axis in (0, 2, 3, 1) for size in sizes[axis * count : (axis + 1) * count]]


def _in_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``conv2d`` that has a gradient in groups too: on a CPU, TensorFlow computes the values only."""

    @functools.wraps(function)
    def conv2d(input: Any, filter: Any, *arguments: Any, **options: Any) -> Any:  # noqa: A002 - TensorFlow's names
        is_last = options.get("data_format", "NHWC") == "NHWC" and not has_gpu()
        channels, taken = (tf.convert_to_tensor(each).shape[axis:][:1] for each, axis in ((input, -1), (filter, -2)))
        if not is_last or not channels.is_fully_defined() or not taken.is_fully_defined() or channels == taken:
            return function(input, filter, *arguments, **options)
        count = channels[0] // taken[0]
        name = options.pop("name", None)
        with tf.name_scope(name, "Conv2D") as scope:
            pairs = zip(tf.split(input, count, 3), tf.split(filter, count, 3), strict=True)
            return tf.concat([function(*pair, *arguments, **options) for pair in pairs], 3, name=scope)

    return conv2d
