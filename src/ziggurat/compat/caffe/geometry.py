"""Shapes of what layers give and of the arrays that they have, by Caffe's rules; all without the batch.

A pooling rounds up and leaves out a last window that begins in the padding. A convolution rounds down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.layers import Layer

__all__ = [
    "Shape",
    "Window",
    "array_shapes",
    "axis_of",
    "output_shapes",
    "reshaped",
    "rounds_up",
    "slice_points",
    "window_of",
]

Shape = tuple[int, ...]

_MOST_NUMBERS: Final = 1 << 29
_LARGEST: Final = 1 << 14


@dataclass(frozen=True)
class Window:
    """Kernel, step, border and holes of a convolution or pooling, each for height and width.

    Args:
        kernel: height and width.
        stride: step between windows.
        pad: zeros on each side.
        dilation: distance of the parts of the kernel.
        is_global: whether it is as large as what it looks at.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)
    is_global: bool = False


def window_of(layer: Layer) -> Window:
    """Return kernel, step, border and holes of a layer."""
    options = layer.options
    is_global = layer.kind == "Pooling" and options.flag("global_pooling", False)
    kernel = _pair(layer, "kernel_size", ("kernel_h", "kernel_w"), 1 if is_global else 0, 1)
    stride = _pair(layer, "stride", ("stride_h", "stride_w"), 1, 1)
    pad = _pair(layer, "pad", ("pad_h", "pad_w"), 0, 0)
    dilation = (1, 1) if layer.kind == "Pooling" else _pair(layer, "dilation", ("", ""), 1, 1)
    if is_global and (pad != (0, 0) or stride != (1, 1)):
        raise _wrong(layer, "A global pooling has no `pad`, and a `stride` of 1")
    return Window(kernel, stride, pad, dilation, is_global)


def rounds_up(layer: Layer) -> bool:
    """Return whether a pooling has a last window that is not whole: Caffe's rule unless the file says otherwise."""
    mode = layer.options.choice("round_mode", ("CEIL", "FLOOR"), "CEIL")
    return mode == "CEIL" and layer.options.flag("ceil_mode", True)


def _pair(layer: Layer, name: str, sides: tuple[str, str], default: int, least: int) -> tuple[int, int]:
    options = layer.options
    values = options.integers(name, least, _LARGEST)
    if sides[0] and (options.has(sides[0]) or options.has(sides[1])):
        if values:
            raise _wrong(layer, f"`{name}` is given once, or as `{sides[0]}` and `{sides[1]}`")
        high, wide = (options.integer(side, default, least, _LARGEST) for side in sides)
        return high, wide
    if len(values) > 2:
        raise _wrong(layer, f"`{name}` has one number, or one each for height and width")
    if not values and default < least:
        raise _wrong(layer, f"A layer of the type `{layer.kind}` has a `{name}`")
    found = values or [default]
    return found[0], found[-1]


def axis_of(layer: Layer, name: str, default: int, rank: int, least: int = 1) -> int:
    """Return an axis, counted with the batch as the first one.

    Args:
        layer: layer with the option.
        name: of the option.
        default: where it is not given.
        rank: axes of the input, with the batch.
        least: 1 where the batch is no axis to work on.
    """
    axis = layer.options.integer(name, default, -rank, rank - 1)
    axis += rank if axis < 0 else 0
    if axis < least or axis >= rank:
        raise _wrong(layer, f"`{name}` of the type `{layer.kind}` is an axis behind the batch", str(axis))
    return axis


def slice_points(layer: Layer, shape: Shape) -> tuple[int, list[int]]:
    """Return the axis of a slice, with the batch, and the sizes of its parts."""
    name = "slice_dim" if layer.options.has("slice_dim") else "axis"
    axis = axis_of(layer, name, 1, len(shape) + 1)
    length, count = shape[axis - 1], len(layer.tops)
    points = layer.options.integers("slice_point")
    if not points:
        if not count or length % count:
            raise _wrong(layer, f"{length} channels are cut into {count} equal parts")
        return axis, [length // count] * count
    edges = [0, *points, length]
    if len(points) != count - 1 or any(one >= other for one, other in itertools.pairwise(edges)):
        raise _wrong(layer, f"`slice_point` has rising places within {length}, one less than tops", str(points[:8]))
    return axis, [other - one for one, other in itertools.pairwise(edges)]


def reshaped(layer: Layer, shape: Shape) -> Shape:
    """Return the shape behind a reshape; -1 is worked out, the batch stays."""
    options = layer.options
    dims = options.message("shape").integers("dim", -1, 1 << 28)
    rank = len(shape) + 1
    first = options.integer("axis", 0, -rank - 1, rank)
    first += rank + 1 if first < 0 else 0
    count = options.integer("num_axes", -1, -1, rank)
    last = rank if count == -1 else first + count
    if first > rank or last > rank:
        raise _wrong(layer, "`axis` and `num_axes` are within the axes of the input")
    whole = (0, *shape)  # the batch, whose size is open
    part = [whole[first + place] if dim == 0 and first + place < rank else dim for place, dim in enumerate(dims)]
    target = [*whole[:first], *part, *whole[last:]]
    if first == 0 and dims and dims[0] == -1 and -1 not in target[1:]:
        target[0] = 0  # the batch is worked out: it is what it was where the rest is as large as before
    if not target or target[0] != 0 or target.count(-1) > 1:
        raise _wrong(layer, "A reshape keeps the batch: its first `dim` is 0", str(dims[:8]))
    known = math.prod(axis for axis in target[1:] if axis != -1)
    total = math.prod(shape)
    if (-1 in target and (not known or total % known)) or (-1 not in target and known != total):
        raise _wrong(layer, f"A reshape keeps the {total} numbers of {shape}", str(dims[:8]))
    return tuple(total // known if axis == -1 else axis for axis in target[1:])


def output_shapes(layer: Layer, inputs: Sequence[Shape]) -> list[Shape]:
    """Return the shapes of what a layer gives.

    Raises:
        CaffeError: where the layer is not known, or does not fit what it takes; names the line.
    """
    if layer.definition is not None:
        return layer.definition.shapes(layer, list(inputs))
    if layer.kind not in _SHAPES:
        raise _unknown(layer)
    least, most, function = _SHAPES[layer.kind]
    if not least <= len(inputs) <= most:
        raise _wrong(
            layer,
            f"A layer of the type `{layer.kind}` takes {least if least == most else f'{least} or more'} bottom(s)",
            str(len(inputs)),
        )
    return function(layer, list(inputs))


def array_shapes(layer: Layer, inputs: Sequence[Shape]) -> list[Shape]:
    """Return the shapes of the arrays that a layer has in a ``.caffemodel``; an empty shape is a single number."""
    if layer.definition is not None:
        return layer.definition.arrays(layer, inputs)
    options = layer.options
    found: list[Shape] = []
    if layer.kind in ("Convolution", "Deconvolution"):
        count, groups = options.integer("num_output", 0), options.integer("group", 1, 1)
        channels = inputs[0][0]
        ends = (count, channels // groups) if layer.kind == "Convolution" else (channels, count // groups)
        found = [(*ends, *window_of(layer).kernel), (count,)]
    elif layer.kind == "InnerProduct":
        axis = axis_of(layer, "axis", 1, len(inputs[0]) + 1)
        count, width = options.integer("num_output", 0), math.prod(inputs[0][axis - 1 :])
        found = [(width, count) if options.flag("transpose", False) else (count, width), (count,)]
    elif layer.kind == "BatchNorm":
        return [(inputs[0][0],), (inputs[0][0],), (1,)]
    elif layer.kind in ("Scale", "Bias") and len(inputs) == 1:
        axis, count = axis_of(layer, "axis", 1, len(inputs[0]) + 1), options.integer("num_axes", 1, -1, 8)
        shape = inputs[0][axis - 1 :] if count == -1 else inputs[0][axis - 1 : axis - 1 + count]
        return [shape, shape] if layer.kind == "Scale" and options.flag("bias_term", False) else [shape]
    elif layer.kind == "PReLU":
        return [() if options.flag("channel_shared", False) else (inputs[0][0],)]
    if found and math.prod(found[0]) > _MOST_NUMBERS:
        raise _wrong(layer, f"A layer has at most {_MOST_NUMBERS:,} weights", f"{math.prod(found[0]):,}")
    return found if not found or options.flag("bias_term", True) else found[:1]


# ---- one kind each


def _same(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    return [inputs[0]]


def _split(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    return [inputs[0]] * len(layer.tops)


def _image_of(layer: Layer, shape: Shape) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise _wrong(layer, f"A layer of the type `{layer.kind}` takes images (channels, height, width)", str(shape))
    return shape[0], shape[1], shape[2]


def _groups(layer: Layer, channels: int) -> int:
    count, groups = layer.options.integer("num_output", 0, 0, 1 << 20), layer.options.integer("group", 1, 1, 1 << 20)
    if not count:
        raise _wrong(layer, f"A layer of the type `{layer.kind}` has a `num_output`")
    if channels % groups or count % groups:
        raise _wrong(layer, f"`group` divides the {channels} channels and `num_output`", f"{groups} and {count}")
    if layer.options.integer("axis", 1, -8, 8) not in (1, -3):
        raise _wrong(layer, "A convolution has its channels at the axis 1")
    return count


def _convolution(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    found = []
    for shape in inputs:
        channels, *sides = _image_of(layer, shape)
        count, window = _groups(layer, channels), window_of(layer)
        extents = [
            (side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
            for side, pad, dilation, kernel, stride in zip(
                sides, window.pad, window.dilation, window.kernel, window.stride
            )
        ]
        found.append((count, *_positive(layer, extents, shape)))
    return found


def _deconvolution(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    found = []
    for shape in inputs:
        channels, *sides = _image_of(layer, shape)
        count, window = _groups(layer, channels), window_of(layer)
        extents = [
            stride * (side - 1) + dilation * (kernel - 1) + 1 - 2 * pad
            for side, pad, dilation, kernel, stride in zip(
                sides, window.pad, window.dilation, window.kernel, window.stride
            )
        ]
        found.append((count, *_positive(layer, extents, shape)))
    return found


def _positive(layer: Layer, extents: Sequence[int], shape: Shape) -> tuple[int, ...]:
    if min(extents) < 1:
        raise _wrong(layer, "The kernel fits into what the layer takes", f"{shape} at `{layer.name[:60]}`")
    return tuple(extents)


def _pooling(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    channels, *sides = _image_of(layer, inputs[0])
    if layer.options.choice("pool", ("MAX", "AVE", "STOCHASTIC"), "MAX") == "STOCHASTIC":
        raise _wrong(layer, "A pooling is `MAX` or `AVE`", "`STOCHASTIC`")
    window = window_of(layer)
    if window.is_global:
        return [(channels, 1, 1)]
    found = []
    for side, kernel, stride, pad in zip(sides, window.kernel, window.stride, window.pad):
        if 2 * pad > kernel:
            raise _wrong(layer, "The `pad` of a pooling is at most half of its kernel", f"{pad} and {kernel}")
        whole = side + 2 * pad - kernel
        count = (-(-whole // stride) if rounds_up(layer) else whole // stride) + 1
        if pad and (count - 1) * stride >= side + pad:
            count -= 1
        if count < 1 or (count - 1) * stride >= side + pad:
            raise _wrong(layer, "Each window of a pooling lies in the image", f"{inputs[0]} at `{layer.name[:60]}`")
        found.append(count)
    return [(channels, *found)]


def _inner_product(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    axis = axis_of(layer, "axis", 1, len(inputs[0]) + 1)
    count = layer.options.integer("num_output", 0, 0, 1 << 24)
    if not count:
        raise _wrong(layer, "A layer of the type `InnerProduct` has a `num_output`")
    return [(*inputs[0][: axis - 1], count)]


def _lrn(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    _image_of(layer, inputs[0])
    if layer.options.integer("local_size", 5, 1, 1 << 12) % 2 == 0:
        raise _wrong(layer, "`local_size` is odd")
    layer.options.choice("norm_region", ("ACROSS_CHANNELS", "WITHIN_CHANNEL"), "ACROSS_CHANNELS")
    return [inputs[0]]


def _scale(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    if len(inputs) == 2:  # the second one has the batch, too
        axis = axis_of(layer, "axis", 1, len(inputs[0]) + 1, least=0)
        if layer.options.flag("bias_term", False) or inputs[0][: len(inputs[1])] != inputs[1] or axis:
            raise _wrong(
                layer, f"A `{layer.kind}` with two bottoms has `axis: 0`, no bias, and shapes that begin alike",
                f"`axis: {axis}`, {inputs[0]} and {inputs[1]}",
            )  # fmt: skip
        return [inputs[0]]
    axis = axis_of(layer, "axis", 1, len(inputs[0]) + 1)
    if axis - 1 + layer.options.integer("num_axes", 1, -1, 8) > len(inputs[0]):
        raise _wrong(layer, "`num_axes` is within the axes of the input")
    return [inputs[0]]


def _concat(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    name = "concat_dim" if layer.options.has("concat_dim") else "axis"
    axis = axis_of(layer, name, 1, len(inputs[0]) + 1) - 1
    rests = {(each[:axis], each[axis + 1 :], len(each)) for each in inputs}
    if len(rests) > 1:
        raise _wrong(layer, "What is joined differs in one axis alone", " and ".join(map(str, inputs[:6])))
    return [(*inputs[0][:axis], sum(each[axis] for each in inputs), *inputs[0][axis + 1 :])]


def _slice(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    axis, sizes = slice_points(layer, inputs[0])
    return [(*inputs[0][: axis - 1], size, *inputs[0][axis:]) for size in sizes]


def _eltwise(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    if len(set(inputs)) > 1:
        raise _wrong(layer, "All bottoms have one shape", " and ".join(map(str, inputs[:6])))
    operation = layer.options.choice("operation", ("PROD", "SUM", "MAX"), "SUM")
    factors = layer.options.numbers("coeff")
    if factors and (operation != "SUM" or len(factors) != len(inputs)):
        raise _wrong(layer, "`coeff` belongs to the operation `SUM`, one for each bottom")
    return [inputs[0]]


def _flatten(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    rank = len(inputs[0]) + 1
    first, last = axis_of(layer, "axis", 1, rank), axis_of(layer, "end_axis", -1, rank)
    if last < first:
        raise _wrong(layer, "`end_axis` is not before `axis`")
    return [(*inputs[0][: first - 1], math.prod(inputs[0][first - 1 : last]), *inputs[0][last:])]


def _reshape(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    return [reshaped(layer, inputs[0])]


def _crop(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    source, reference = inputs
    if len(source) != len(reference):
        raise _wrong(layer, "What is cut and what it is cut to have the same axes", f"{source} and {reference}")
    axis = axis_of(layer, "axis", 2, len(source) + 1)
    offsets = layer.options.integers("offset", 0, 1 << 20)
    if len(offsets) > 1 and len(offsets) != len(source) + 1 - axis:
        raise _wrong(layer, "`offset` is one number, or one for each axis that is cut")
    found = list(source)
    for place in range(axis - 1, len(source)):
        offset = offsets[min(place - axis + 1, len(offsets) - 1)] if offsets else 0
        if offset + reference[place] > source[place]:
            raise _wrong(layer, "A crop lies in what is cut", f"{reference} from {source}")
        found[place] = reference[place]
    return [tuple(found)]


def _softmax(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    axis_of(layer, "axis", 1, len(inputs[0]) + 1)
    return [inputs[0]]


def _normalized(layer: Layer, inputs: list[Shape]) -> list[Shape]:
    if len(inputs[0]) not in (1, 3):
        raise _wrong(layer, "A `BatchNorm` takes images or rows of numbers", str(inputs[0]))
    return [inputs[0]]


_ONE: Final = (1, 1, _same)
_MANY: Final = 500
_SHAPES: Final[dict[str, tuple[int, int, Callable[[Layer, list[Shape]], list[Shape]]]]] = {
    **dict.fromkeys(("ReLU", "ELU", "Sigmoid", "TanH", "AbsVal", "Power", "Dropout", "PReLU"), _ONE),
    "Split": (1, 1, _split),
    "Convolution": (1, 1, _convolution),
    "Deconvolution": (1, 1, _deconvolution),
    "Pooling": (1, 1, _pooling),
    "InnerProduct": (1, 1, _inner_product),
    "LRN": (1, 1, _lrn),
    "BatchNorm": (1, 1, _normalized),
    "Scale": (1, 2, _scale),
    "Bias": (1, 2, _scale),
    "Concat": (1, _MANY, _concat),
    "Slice": (1, 1, _slice),
    "Eltwise": (2, _MANY, _eltwise),
    "Flatten": (1, 1, _flatten),
    "Reshape": (1, 1, _reshape),
    "Crop": (2, 2, _crop),
    "Softmax": (1, 1, _softmax),
}


def _unknown(layer: Layer) -> CaffeError:
    advice = "Import the part of the network before it with --until LAYER."
    if layer.kind == "Python":
        module = layer.message.message("python_param")
        what = ".".join(filter(None, (module.text("module")[:60], module.text("layer")[:60]))) or "a module of its own"
        return CaffeError(
            f"The layer `{layer.name[:60]}` is written in Python, and is not imported.",
            line=layer.line,
            received=f"`{what}`",
            advice=advice,
        )
    return CaffeError(
        f"`{layer.kind[:60]}` is not a type of layer that an import knows.",
        line=layer.line,
        received=f"the layer `{layer.name[:60]}`",
        advice=f"Known: {', '.join(sorted(_SHAPES))}. {advice}",
    )


def _wrong(layer: Layer, rule: str, received: str = "") -> CaffeError:
    return CaffeError(f"{rule}.", line=layer.line, received=received or f"the layer `{layer.name[:60]}`")
