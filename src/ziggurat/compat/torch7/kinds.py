"""Kinds of layers of Torch that Caffe has not: shapes, NumPy forward by Torch's definitions, and lines for PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.compat.caffe.geometry import Shape
from ziggurat.compat.caffe.graph import Graph, Node
from ziggurat.compat.caffe.kinds import LayerKind
from ziggurat.compat.caffe.layers import Layer
from ziggurat.compat.torch7.errors import TorchError

__all__ = ["ELEMENTWISE", "KINDS"]

_Arrays = Sequence[np.ndarray]


def _integers(layer: Layer, name: str) -> list[int]:
    return layer.options.integers(name, -(1 << 20), 1 << 20)


def _wrong(layer: Layer, rule: str, received: object = "") -> TorchError:
    return TorchError(f"{rule}.", line=layer.line, received=str(received))


def _image(layer: Layer, inputs: Sequence[Shape]) -> tuple[int, int, int]:
    if len(inputs[0]) != 3:
        raise _wrong(layer, f"nn.{layer.kind} takes images (channels, height, width)", inputs[0])
    return inputs[0][0], inputs[0][1], inputs[0][2]


def _pair(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[1] else f"({values[0]}, {values[1]})"


def _same(_layer: Layer, inputs: list[Shape]) -> list[Shape]:
    return [inputs[0]]


def _call(_graph: Graph, _node: Node, module: str, inputs: Sequence[str]) -> str:
    return f"{module}({inputs[0]})"


# ---- pooling


def _pooled(layer: Layer, inputs: Sequence[Shape]) -> list[int]:
    """Return height and width behind a pooling; the last window begins in the image."""
    sides, found = _image(layer, inputs)[1:], []
    rounds_up = layer.options.flag("ceil", False)
    rows = zip(sides, *(_integers(layer, name) for name in ("kernel", "stride", "pad")))
    for side, kernel, stride, pad in rows:
        if kernel < 1 or stride < 1 or pad < 0 or 2 * pad > kernel:
            raise _wrong(layer, "A pooling has a kernel and a step from 1, and at most half of the kernel as padding")
        whole = side + 2 * pad - kernel
        if whole < 0:
            raise _wrong(layer, "The window of a pooling fits into the image", inputs[0])
        count = (-(-whole // stride) if rounds_up else whole // stride) + 1
        found.append(count - 1 if rounds_up and pad + side <= (count - 1) * stride else count)
    return found


def _pooling_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    return [(inputs[0][0], *_pooled(layer, inputs))]


def _pooling(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    rows, columns = _pooled(layer, [x.shape[1:]])
    (high, wide), (down, right), (top, left) = (_integers(layer, name) for name in ("kernel", "stride", "pad"))
    height, width = x.shape[2:]
    is_max, counts_pad = layer.kind == "SpatialMaxPooling", layer.options.flag("counts_pad", True)
    result = np.empty((*x.shape[:2], rows, columns), np.float32)
    for row in range(rows):
        first, last = row * down - top, min(row * down - top + high, height + top)
        for column in range(columns):
            begin, end = column * right - left, min(column * right - left + wide, width + left)
            part = x[:, :, max(first, 0) : min(last, height), max(begin, 0) : min(end, width)]
            share = (last - first) * (end - begin) if counts_pad else part.shape[2] * part.shape[3]
            result[:, :, row, column] = part.max((2, 3)) if is_max else part.sum((2, 3)) / np.float32(share)
    return [result]


def _pooling_module(_graph: Graph, node: Node) -> str:
    layer = node.layer
    kernel, stride, pad = (_integers(layer, name) for name in ("kernel", "stride", "pad"))
    parts = [_pair(kernel), _pair(stride)]
    parts += [f"padding={_pair(pad)}"] if any(pad) else []
    parts += ["ceil_mode=True"] if layer.options.flag("ceil", False) else []
    parts += (
        []
        if layer.options.flag("counts_pad", True) or layer.kind == "SpatialMaxPooling"
        else ["count_include_pad=False"]
    )
    return f"nn.{'Max' if layer.kind == 'SpatialMaxPooling' else 'Avg'}Pool2d({', '.join(parts)})"


def _adaptive_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    wide, high = _integers(layer, "size")
    if min(wide, high) < 1:
        raise _wrong(layer, "An adaptive pooling gives at least one number")
    return [(_image(layer, inputs)[0], high, wide)]


def _adaptive(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x, (wide, high) = inputs[0], _integers(layer, "size")
    result = np.empty((*x.shape[:2], high, wide), np.float32)
    for row in range(high):
        top, bottom = math.floor(row * x.shape[2] / high), math.ceil((row + 1) * x.shape[2] / high)
        for column in range(wide):
            left, right = math.floor(column * x.shape[3] / wide), math.ceil((column + 1) * x.shape[3] / wide)
            part = x[:, :, top:bottom, left:right]
            result[:, :, row, column] = part.max((2, 3)) if "Max" in layer.kind else part.mean((2, 3))
    return [result]


def _adaptive_module(_graph: Graph, node: Node) -> str:
    wide, high = _integers(node.layer, "size")
    return f"nn.Adaptive{'Max' if 'Max' in node.layer.kind else 'Avg'}Pool2d(({high}, {wide}))"


# ---- normalization


def _norm_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    count = layer.options.integer("channels", 0)
    if inputs[0][0] != count or len(inputs[0]) != (3 if layer.kind.startswith("Spatial") else 1):
        raise _wrong(layer, f"nn.{layer.kind} has {count} channels", f"{inputs[0]}")
    return [inputs[0]]


def _norm_arrays(layer: Layer, inputs: Sequence[Shape]) -> list[Shape]:
    return [(inputs[0][0],)] * 4


def _norm(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    x = inputs[0]
    weight, bias, mean, variance = (each.reshape((1, -1) + (1,) * (x.ndim - 2)) for each in arrays)
    return [(x - mean) / np.sqrt(variance + np.float32(layer.options.number("eps", 1e-5))) * weight + bias]


def _norm_module(_graph: Graph, node: Node) -> str:
    options = node.layer.options
    eps, momentum = options.number("eps", 1e-5), options.number("momentum", 0.1)
    named = (f", eps={eps!r}" if eps != 1e-5 else "") + (f", momentum={momentum!r}" if momentum != 0.1 else "")
    return f"nn.BatchNorm{2 if node.layer.kind.startswith('Spatial') else 1}d({options.integer('channels', 0)}{named})"


def _plain_norm_arrays(layer: Layer, inputs: Sequence[Shape]) -> list[Shape]:
    return [(inputs[0][0],)] * 2


def _plain_norm(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    one, none = np.ones_like(arrays[0]), np.zeros_like(arrays[0])
    return _norm(layer, inputs, (one, none, *arrays))


def _plain_norm_module(graph: Graph, node: Node) -> str:
    return f"{_norm_module(graph, node)[:-1]}, affine=False)"


# ---- in time


def _temporal_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    kernel, stride = layer.options.integer("kernel", 1, 1), layer.options.integer("stride", 1, 1)
    if len(inputs[0]) != 2 or inputs[0][0] < kernel:
        raise _wrong(layer, f"nn.{layer.kind} takes (steps, numbers) with at least {kernel} steps", inputs[0])
    width = layer.options.integer("width", 0)
    if width and inputs[0][1] != width:
        raise _wrong(layer, f"nn.{layer.kind} takes {width} numbers at each step", inputs[0])
    return [((inputs[0][0] - kernel) // stride + 1, layer.options.integer("num_output", inputs[0][1], 1))]


def _temporal_arrays(layer: Layer, inputs: Sequence[Shape]) -> list[Shape]:
    count = layer.options.integer("num_output", 0)
    return [(count, inputs[0][1], layer.options.integer("kernel", 1)), (count,)]


def _steps(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Return the windows of rows: (N, windows, kernel, numbers)."""
    kernel, stride = layer.options.integer("kernel", 1), layer.options.integer("stride", 1)
    firsts = range(0, x.shape[1] - kernel + 1, stride)
    return np.stack([x[:, first : first + kernel] for first in firsts], 1)


def _temporal(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    return [np.einsum("nwkc,dck->nwd", _steps(layer, inputs[0]), arrays[0], optimize=True) + arrays[1]]


def _temporal_module(graph: Graph, node: Node) -> str:
    options, width = node.layer.options, graph.shapes[node.inputs[0]][1]
    stride = options.integer("stride", 1)
    named = f", stride={stride}" if stride != 1 else ""
    return f"nn.Conv1d({width}, {options.integer('num_output', 0)}, {options.integer('kernel', 1)}{named})"


def _temporal_pool_module(_graph: Graph, node: Node) -> str:
    return f"nn.MaxPool1d({node.layer.options.integer('kernel', 1)}, {node.layer.options.integer('stride', 1)})"


def _temporal_line(_graph: Graph, _node: Node, module: str, inputs: Sequence[str]) -> str:
    return f"{module}({inputs[0]}.transpose(1, 2)).transpose(1, 2)"


# ---- single axes


def _padding_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    channels, height, width = _image(layer, inputs)
    left, right, top, bottom = _integers(layer, "pad")
    found = (channels, height + top + bottom, width + left + right)
    if min(found) < 1:
        raise _wrong(layer, "nn.SpatialZeroPadding leaves something of the image", inputs[0])
    return [found]


def _padding(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    x, (left, right, top, bottom) = inputs[0], _integers(layer, "pad")
    x = x[:, :, max(0, -top) : x.shape[2] - max(0, -bottom), max(0, -left) : x.shape[3] - max(0, -right)]
    return [np.pad(x, ((0, 0), (0, 0), (max(0, top), max(0, bottom)), (max(0, left), max(0, right))))]


def _padding_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    return f"F.pad({inputs[0]}, ({', '.join(map(str, _integers(node.layer, 'pad')))}))"


def _narrow_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    axis, first, length = _integers(layer, "part")
    if first < 0 or length < 1 or first + length > inputs[0][axis - 1]:
        raise _wrong(layer, "What nn.Narrow takes lies within its input", inputs[0])
    return [(*inputs[0][: axis - 1], length, *inputs[0][axis:])]


def _narrow(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    axis, first, length = _integers(layer, "part")
    return [np.take(inputs[0], range(first, first + length), axis)]


def _narrow_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    axis, first, length = _integers(node.layer, "part")
    return f"{inputs[0]}.narrow({axis}, {first}, {length})"


def _transpose_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    order = _integers(layer, "order")
    return [tuple(inputs[0][axis - 1] for axis in order[1:])]


def _transpose(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    return [inputs[0].transpose(_integers(layer, "order"))]


def _transpose_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    return f"{inputs[0]}.permute({', '.join(map(str, _integers(node.layer, 'order')))})"


def _log_softmax(_layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    shifted = inputs[0] - inputs[0].max(1, keepdims=True)
    return [shifted - np.log(np.exp(shifted).sum(1, keepdims=True))]


# ---- words


def _look_up_shapes(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    row = tuple(side for side in inputs[0] if side != 1)
    if len(row) != 1:
        raise _wrong(layer, f"nn.{layer.kind} takes a row of numbers from 1", inputs[0])
    return [(row[0], layer.options.integer("width", 0, 1, 1 << 20))]


def _look_up(layer: Layer, inputs: list[np.ndarray], arrays: _Arrays) -> list[np.ndarray]:
    places = inputs[0].reshape(len(inputs[0]), -1).astype(int) - 1
    table = np.eye(layer.options.integer("width", 0), dtype=np.float32) if layer.kind == "OneHot" else arrays[0]
    return [table[np.clip(places, 0, len(table) - 1)]]


def _look_up_arrays(layer: Layer, _inputs: Sequence[Shape]) -> list[Shape]:
    return [(layer.options.integer("count", 0, 1, 1 << 24), layer.options.integer("width", 0))]


def _look_up_module(_graph: Graph, node: Node) -> str:
    return f"nn.Embedding({node.layer.options.integer('count', 0)}, {node.layer.options.integer('width', 0)})"


def _place(node: Node, x: str, count: int) -> str:
    return f"({x}.flatten(1).long() - 1).clamp(0, {count - 1})"


def _look_up_line(_graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    return f"{module}({_place(node, inputs[0], node.layer.options.integer('count', 0))})"


def _one_hot_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    width = node.layer.options.integer("width", 0)
    return f"F.one_hot({_place(node, inputs[0], width)}, {width}).float()"


# ---- number by number


def _threshold(layer: Layer, inputs: list[np.ndarray], _arrays: _Arrays) -> list[np.ndarray]:
    limit, value = layer.options.numbers("value")
    return [np.where(inputs[0] > np.float32(limit), inputs[0], np.float32(value))]


def _threshold_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    limit, value = node.layer.options.numbers("value")
    return f"F.relu({inputs[0]})" if limit == value == 0 else f"F.threshold({inputs[0]}, {limit!r}, {value!r})"


def _elementwise(compute: Callable[[np.ndarray], Any], text: str) -> LayerKind:
    return LayerKind(
        shapes=_same,
        forward=lambda _layer, inputs, _arrays: [compute(inputs[0])],
        line=lambda _graph, _node, _module, inputs: text.format(inputs[0]),
    )


ELEMENTWISE: Final = {
    "ReLU6": _elementwise(lambda x: np.clip(x, 0, 6), "F.relu6({})"),
    "HardTanh": _elementwise(lambda x: np.clip(x, -1, 1), "F.hardtanh({})"),
    "SoftPlus": _elementwise(lambda x: np.logaddexp(0, x), "F.softplus({})"),
    "SoftSign": _elementwise(lambda x: x / (1 + abs(x)), "F.softsign({})"),
    "LogSigmoid": _elementwise(lambda x: -np.logaddexp(0, -x), "F.logsigmoid({})"),
    "Exp": _elementwise(np.exp, "torch.exp({})"),
    "Log": _elementwise(np.log, "torch.log({})"),
}
"""Modules without arguments that change each number for itself."""

_NORM: Final = LayerKind(
    shapes=_norm_shapes, forward=_norm, line=_call, module=_norm_module, arrays=_norm_arrays,
    trained=("weight", "bias"), state=("weight", "bias", "running_mean", "running_var"),
)  # fmt: skip
_PLAIN_NORM: Final = LayerKind(
    shapes=_norm_shapes, forward=_plain_norm, line=_call, module=_plain_norm_module, arrays=_plain_norm_arrays,
    state=("running_mean", "running_var"),
)  # fmt: skip
_POOLING: Final = LayerKind(shapes=_pooling_shapes, forward=_pooling, line=_call, module=_pooling_module)
_ADAPTIVE: Final = LayerKind(shapes=_adaptive_shapes, forward=_adaptive, line=_call, module=_adaptive_module)

KINDS: Final[dict[str, LayerKind]] = {
    **ELEMENTWISE,
    "SpatialMaxPooling": _POOLING,
    "SpatialAveragePooling": _POOLING,
    "SpatialAdaptiveMaxPooling": _ADAPTIVE,
    "SpatialAdaptiveAveragePooling": _ADAPTIVE,
    "SpatialBatchNormalization": _NORM,
    "BatchNormalization": _NORM,
    "SpatialBatchNormalization without weights": _PLAIN_NORM,
    "BatchNormalization without weights": _PLAIN_NORM,
    "TemporalConvolution": LayerKind(
        shapes=_temporal_shapes, forward=_temporal, line=_temporal_line, module=_temporal_module,
        arrays=_temporal_arrays, trained=("weight", "bias"), state=("weight", "bias"),
    ),
    "TemporalMaxPooling": LayerKind(
        shapes=_temporal_shapes, forward=lambda layer, inputs, _arrays: [_steps(layer, inputs[0]).max(2)],
        line=_temporal_line, module=_temporal_pool_module,
    ),
    "SpatialZeroPadding": LayerKind(shapes=_padding_shapes, forward=_padding, line=_padding_line),
    "SpatialDropout": LayerKind(
        shapes=_same, forward=lambda _layer, inputs, _arrays: [inputs[0]], line=_call,
        module=lambda _graph, node: f"nn.Dropout2d({node.layer.options.number('dropout_ratio', 0.5)!r})",
    ),
    "Narrow": LayerKind(shapes=_narrow_shapes, forward=_narrow, line=_narrow_line),
    "Transpose": LayerKind(shapes=_transpose_shapes, forward=_transpose, line=_transpose_line),
    "LogSoftMax": LayerKind(
        shapes=_same, forward=_log_softmax, line=lambda _g, _n, _m, inputs: f"F.log_softmax({inputs[0]}, 1)"
    ),
    "Threshold": LayerKind(shapes=_same, forward=_threshold, line=_threshold_line),
    "OneHot": LayerKind(shapes=_look_up_shapes, forward=_look_up, line=_one_hot_line),
    "LookupTable": LayerKind(
        shapes=_look_up_shapes, forward=_look_up, line=_look_up_line, module=_look_up_module, arrays=_look_up_arrays,
        trained=("weight",), state=("weight",),
    ),
}  # fmt: skip
"""Kind → what an import does with it."""
