"""Forward pass of Caffe in NumPy, as in its test phase: the other side of an import's comparison.

It follows the definitions of the layers and shares no code with the conversion to PyTorch but the shapes. Convolutions
are products of matrices of image parts (im2col; Chellapilla, Puri and Simard, "High performance convolutional neural
networks for document processing", 2006). Computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ziggurat.compat.caffe.geometry import Window, axis_of, reshaped, rounds_up, slice_points, window_of
from ziggurat.compat.caffe.graph import Graph
from ziggurat.compat.caffe.layers import Layer

__all__ = ["forward"]

_MOST_COLUMN_BYTES: Final = 64 << 20

_Arrays = Sequence[np.ndarray]


def forward(graph: Graph, images: np.ndarray, arrays: Mapping[str, _Arrays]) -> dict[int, np.ndarray]:
    """Return value → what it is for images, of every layer.

    Args:
        graph: the network.
        images: (N, C, H, W) float32, with mean and scale applied, BGR where it has colors.
        arrays: layer → its arrays, in Caffe's shapes.
    """
    values = {graph.image: np.asarray(images, np.float32)}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            inputs = [values[number] for number in node.inputs]
            definition = node.layer.definition
            compute = _KINDS[node.layer.kind] if definition is None else definition.forward
            found = compute(node.layer, inputs, arrays.get(node.layer.name, ()))
            for number, value in zip(node.outputs, found):
                values[number] = np.ascontiguousarray(value, np.float32)
    return values


def _convolution(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x, weight, window = inputs[0], arrays[0], window_of(layer)
    groups = layer.options.integer("group", 1)
    count, channels, high, wide = weight.shape
    rows, columns = (
        (side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        for side, pad, dilation, kernel, stride in zip(
            x.shape[2:], window.pad, window.dilation, window.kernel, window.stride
        )
    )
    padded = np.pad(x, ((0, 0), (0, 0), *((pad, pad) for pad in window.pad)))
    result = np.empty((len(x), count, rows, columns), np.float32)
    at_once = max(1, _MOST_COLUMN_BYTES // max(1, channels * high * wide * columns * 4))
    for sample in range(len(x)):
        for group in range(groups):
            part = padded[sample, group * channels : (group + 1) * channels]
            kernel = weight[group * (count // groups) : (group + 1) * (count // groups)].reshape(count // groups, -1)
            for first in range(0, rows, at_once):
                last = min(rows, first + at_once)
                matrix = _columns(part, (first, last), columns, window)
                place = slice(group * (count // groups), (group + 1) * (count // groups))
                result[sample, place, first:last] = (kernel @ matrix).reshape(-1, last - first, columns)
    return [result + arrays[1].reshape(1, -1, 1, 1) if len(arrays) > 1 else result]


def _columns(image: np.ndarray, rows: tuple[int, int], columns: int, window: Window) -> np.ndarray:
    """Return the parts of an image that a kernel sees, one a column: (C · kernel height · kernel width, places)."""
    (high, wide), (down, right), (step, side) = window.kernel, window.stride, window.dilation
    count = rows[1] - rows[0]
    found = np.empty((len(image), high, wide, count, columns), np.float32)
    for row in range(high):
        top = rows[0] * down + row * step
        for column in range(wide):
            left = column * side
            found[:, row, column] = image[
                :, top : top + down * (count - 1) + 1 : down, left : left + right * (columns - 1) + 1 : right
            ]
    return found.reshape(-1, count * columns)


def _deconvolution(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x, weight, window = inputs[0], arrays[0], window_of(layer)
    groups = layer.options.integer("group", 1)
    channels, count, high, wide = weight.shape
    (down, right), (step, side), (top, left) = window.stride, window.dilation, window.pad
    rows, columns = x.shape[2:]
    whole = np.zeros(
        (
            len(x),
            count * groups,
            down * (rows - 1) + step * (high - 1) + 1,
            right * (columns - 1) + side * (wide - 1) + 1,
        ),
        np.float32,
    )
    size = channels // groups
    for group in range(groups):
        part, place = x[:, group * size : (group + 1) * size], slice(group * count, (group + 1) * count)
        for row in range(high):
            for column in range(wide):
                kernel = weight[group * size : (group + 1) * size, :, row, column]
                added = np.einsum("nchw,cd->ndhw", part, kernel, optimize=True)
                whole[:, place, row * step :: down, column * side :: right][:, :, :rows, :columns] += added
    result = whole[:, :, top : whole.shape[2] - top, left : whole.shape[3] - left]
    return [result + arrays[1].reshape(1, -1, 1, 1) if len(arrays) > 1 else result]


def _pooling(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x, window = inputs[0], window_of(layer)
    is_max = layer.options.choice("pool", ("MAX", "AVE", "STOCHASTIC"), "MAX") == "MAX"
    if window.is_global:
        return [x.max((2, 3), keepdims=True) if is_max else x.mean((2, 3), keepdims=True)]
    (high, wide), (down, right), (top, left) = window.kernel, window.stride, window.pad
    height, width = x.shape[2:]
    up = rounds_up(layer)
    rows, columns = _pooled(height, high, down, top, up), _pooled(width, wide, right, left, up)
    result = np.empty((*x.shape[:2], rows, columns), np.float32)
    for row in range(rows):
        first = row * down - top
        last = min(first + high, height + top)
        for column in range(columns):
            begin = column * right - left
            end = min(begin + wide, width + left)
            part = x[:, :, max(first, 0) : min(last, height), max(begin, 0) : min(end, width)]
            share = (last - first) * (end - begin)
            result[:, :, row, column] = part.max((2, 3)) if is_max else part.sum((2, 3)) / np.float32(share)
    return [result]


def _pooled(side: int, kernel: int, stride: int, pad: int, up: bool) -> int:
    share = (side + 2 * pad - kernel) / stride
    count = int(np.ceil(share) if up else np.floor(share)) + 1
    return count - 1 if pad and (count - 1) * stride >= side + pad else count


def _inner_product(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    axis = axis_of(layer, "axis", 1, x.ndim)
    rows = x.reshape(*x.shape[:axis], -1)
    weight = arrays[0] if layer.options.flag("transpose", False) else arrays[0].T
    result = rows @ weight
    return [result + arrays[1].reshape(-1) if len(arrays) > 1 else result]


def _lrn(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x, options = inputs[0], layer.options
    size = options.integer("local_size", 5)
    alpha, beta, k = options.number("alpha", 1.0), options.number("beta", 0.75), options.number("k", 1.0)
    squares, half = x * x, size // 2
    if options.choice("norm_region", ("ACROSS_CHANNELS", "WITHIN_CHANNEL"), "ACROSS_CHANNELS") == "ACROSS_CHANNELS":
        padded = np.pad(squares, ((0, 0), (half, half), (0, 0), (0, 0)))
        total = sum(padded[:, place : place + x.shape[1]] for place in range(size))
        return [x * np.power(k + np.float32(alpha / size) * total, np.float32(-beta))]
    padded = np.pad(squares, ((0, 0), (0, 0), (half, half), (half, half)))
    height, width = x.shape[2:]
    total = sum(padded[:, :, i : i + height, j : j + width] for i in range(size) for j in range(size))
    return [x * np.power(1 + np.float32(alpha / size**2) * total, np.float32(-beta))]


def _batch_norm(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x, count = inputs[0], float(arrays[2].reshape(-1)[0])
    shape = (1, -1) + (1,) * (x.ndim - 2)
    factor = np.float32(0.0 if count == 0 else 1.0 / count)
    mean, variance = (each.reshape(shape) * factor for each in arrays[:2])
    return [(x - mean) / np.sqrt(variance + np.float32(layer.options.number("eps", 1e-5)))]


def _scale(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    parts = [inputs[1]] if len(inputs) == 2 else list(arrays)
    axis = 0 if len(inputs) == 2 else axis_of(layer, "axis", 1, x.ndim)
    placed = [each.reshape((1,) * axis + each.shape + (1,) * (x.ndim - axis - each.ndim)) for each in parts]
    if layer.kind == "Bias":
        return [x + placed[0]]
    return [x * placed[0] + placed[1] if len(placed) > 1 else x * placed[0]]


def _relu(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    slope = np.float32(layer.options.number("negative_slope", 0.0))
    return [np.maximum(inputs[0], 0) + slope * np.minimum(inputs[0], 0)]


def _prelu(_layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x, slope = inputs[0], arrays[0].reshape(-1)
    shaped = slope if slope.size == 1 else slope.reshape((1, -1) + (1,) * (x.ndim - 2))
    return [np.maximum(x, 0) + shaped * np.minimum(x, 0)]


def _elu(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    return [np.maximum(x, 0) + np.float32(layer.options.number("alpha", 1.0)) * np.expm1(np.minimum(x, 0))]


def _sigmoid(_layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    return [0.5 * np.tanh(0.5 * inputs[0]) + 0.5]


def _tanh(_layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    return [np.tanh(inputs[0])]


def _absolute(_layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    return [np.abs(inputs[0])]


def _power(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    power, scale, shift = (
        np.float32(layer.options.number(n, d)) for n, d in (("power", 1), ("scale", 1), ("shift", 0))
    )
    base = scale * inputs[0] + shift
    return [base if power == 1 else np.power(base, power)]


def _same(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    """Return the input: dropout does nothing in the test phase where it scales in the training."""
    if layer.kind == "Dropout" and not layer.options.flag("scale_train", True):
        return [inputs[0] * np.float32(1 - layer.options.number("dropout_ratio", 0.5))]
    return [inputs[0]] * max(1, len(layer.tops))


def _concat(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    name = "concat_dim" if layer.options.has("concat_dim") else "axis"
    return [np.concatenate(inputs, axis_of(layer, name, 1, inputs[0].ndim))]


def _slice(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    axis, sizes = slice_points(layer, inputs[0].shape[1:])
    return list(np.split(inputs[0], np.cumsum(sizes)[:-1], axis))


def _eltwise(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    operation = layer.options.choice("operation", ("PROD", "SUM", "MAX"), "SUM")
    factors = layer.options.numbers("coeff") or [1.0] * len(inputs)
    result = inputs[0] * np.float32(factors[0])
    for factor, each in zip(factors[1:], inputs[1:]):
        if operation == "PROD":
            result = result * each
        else:
            result = np.maximum(result, each) if operation == "MAX" else result + np.float32(factor) * each
    return [result]


def _flatten(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    first, last = axis_of(layer, "axis", 1, x.ndim), axis_of(layer, "end_axis", -1, x.ndim)
    return [x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :])]


def _reshape(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    return [x.reshape(len(x), *reshaped(layer, x.shape[1:]))]


def _crop(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x, reference = inputs
    axis, offsets = axis_of(layer, "axis", 2, x.ndim), layer.options.integers("offset") or [0]
    places = [slice(None)] * axis
    for place in range(axis, x.ndim):
        offset = offsets[min(place - axis, len(offsets) - 1)]
        places.append(slice(offset, offset + reference.shape[place]))
    return [x[tuple(places)]]


def _softmax(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    axis = axis_of(layer, "axis", 1, inputs[0].ndim)
    raised = np.exp(inputs[0] - inputs[0].max(axis, keepdims=True))
    return [raised / raised.sum(axis, keepdims=True)]


_KINDS: Final[dict[str, Callable[[Layer, list[np.ndarray], _Arrays], list[np.ndarray]]]] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Pooling": _pooling,
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "BatchNorm": _batch_norm,
    "Scale": _scale,
    "Bias": _scale,
    "ReLU": _relu,
    "PReLU": _prelu,
    "ELU": _elu,
    "Sigmoid": _sigmoid,
    "TanH": _tanh,
    "AbsVal": _absolute,
    "Power": _power,
    "Dropout": _same,
    "Split": _same,
    "Concat": _concat,
    "Slice": _slice,
    "Eltwise": _eltwise,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Crop": _crop,
    "Softmax": _softmax,
}
