"""Layers as lines of a network file for PyTorch: what ``__init__`` makes, and what ``forward`` computes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Final

from ziggurat.compat.caffe.geometry import Shape, array_shapes, axis_of, reshaped, rounds_up, slice_points, window_of
from ziggurat.compat.caffe.graph import Graph, Node

__all__ = ["CLASSES", "Names", "forward_line", "made_module"]

CLASSES: Final = "classes"
"""Name of the number of classes in a network file."""

_TAKEN: Final = frozenset(
    [
        "training",
        "forward",
        "loss",
        "scalars",
        "apply",
        "bfloat16",
        "buffers",
        "call_super_init",
        "children",
        "compile",
        "cpu",
        "cuda",
        "double",
        "dump_patches",
        "eval",
        "extra_repr",
        "float",
        "half",
        "ipu",
        "load_state_dict",
        "modules",
        "mtia",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "register_buffer",
        "register_module",
        "register_parameter",
        "requires_grad_",
        "share_memory",
        "get_buffer",
        "get_extra_state",
        "get_parameter",
        "get_submodule",
        "set_extra_state",
        "set_submodule",
        "state_dict",
        "to",
        "to_empty",
        "train",
        "type",
        "xpu",
        "zero_grad",
        "add_module",
        "fineTuneHook",
        "gradientUpdate",
        "T_destination",
        "mean_image",
        "rates",
        "self",
        "torch",
        "nn",
        "F",
        "np",
        "digits",
        "Tower",
        "model_property",
        "nclasses",
        "input_shape",
        "classes",
        "output",
        "y",
        "super",
        "len",
        "isinstance",
        "xavier",
        "msra",
        "bilinear",
        "BatchNorm",
        "Scale",
        "Bias",
        "RATES",
        "DECAYS",
        "register_forward_hook",
        "register_full_backward_hook",
        "layer",
        "names",
    ]
)


class Names:
    """Names of Python for those of Caffe, which may have any letters; equal names stay equal, others stay apart."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the name in Python."""
        if name not in self._known:
            found = re.sub(r"\W", "_", name, flags=re.ASCII)[:80] or "layer"
            if found[0].isdigit() or found.startswith("_"):
                found = f"layer_{found.lstrip('_')}"
            if keyword.iskeyword(found) or found in _TAKEN:
                found += "_"
            while found in self._known.values():
                found += "_"
            self._known[name] = found
        return self._known[name]


def made_module(graph: Graph, node: Node) -> str:
    """Return what makes the module of a layer; empty where it has none."""
    if node.layer.definition is not None:
        return node.layer.definition.module(graph, node)
    maker = _MODULES.get(node.layer.kind)
    return maker(graph, node) if maker else ""


def forward_line(graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    """Return the expression of what a layer gives.

    Args:
        graph: the network.
        node: the layer.
        module: its module, such as ``self.conv1``; empty where it has none.
        inputs: names of what it takes.
    """
    if node.layer.definition is not None:
        return node.layer.definition.line(graph, node, module, inputs)
    if node.layer.kind in _EXPRESSIONS:
        return _EXPRESSIONS[node.layer.kind](graph, node, module, inputs)
    return f"{module}({inputs[0]})"


def _shape(graph: Graph, node: Node, place: int = 0) -> Shape:
    return graph.shapes[node.inputs[place]]


def _count(graph: Graph, node: Node) -> str:
    return CLASSES if node.layer.name in graph.heads else str(node.layer.options.integer("num_output", 0))


def _pair(values: tuple[int, int]) -> str:
    return str(values[0]) if values[0] == values[1] else f"({values[0]}, {values[1]})"


def _named(**values: str) -> str:
    return "".join(f", {name}={value}" for name, value in values.items() if value)


def _unless(value: str, default: str) -> str:
    return "" if value == default else value


# ---- modules


def _convolution(graph: Graph, node: Node) -> str:
    options, window = node.layer.options, window_of(node.layer)
    is_transposed = node.layer.kind == "Deconvolution"
    channels, count = str(_shape(graph, node)[0]), _count(graph, node)
    groups = str(options.integer("group", 1))
    if is_transposed and count == CLASSES and channels == str(graph.class_count):
        channels = CLASSES
        groups = CLASSES if groups == str(graph.class_count) and groups != "1" else groups
    named = _named(
        stride=_unless(_pair(window.stride), "1"),
        padding=_unless(_pair(window.pad), "0"),
        dilation=_unless(_pair(window.dilation), "1"),
        groups=_unless(groups, "1"),
        bias="" if options.flag("bias_term", True) else "False",
    )
    return f"nn.Conv{'Transpose' if is_transposed else ''}2d({channels}, {count}, {_pair(window.kernel)}{named})"


def _inner_product(graph: Graph, node: Node) -> str:
    shape = _shape(graph, node)
    axis = axis_of(node.layer, "axis", 1, len(shape) + 1)
    width = 1
    for side in shape[axis - 1 :]:
        width *= side
    bias = _named(bias="" if node.layer.options.flag("bias_term", True) else "False")
    return f"nn.Linear({width}, {_count(graph, node)}{bias})"


def _pooling(graph: Graph, node: Node) -> str:
    window = window_of(node.layer)
    kind = "Max" if node.layer.options.choice("pool", ("MAX", "AVE", "STOCHASTIC"), "MAX") == "MAX" else "Avg"
    if window.is_global:
        return f"nn.Adaptive{kind}Pool2d(1)"
    padding = _named(padding=_unless(_pair(window.pad), "0"))
    ceil = _named(ceil_mode="True" if rounds_up(node.layer) else "")
    return f"nn.{kind}Pool2d({_pair(window.kernel)}, {_pair(window.stride)}{padding}{ceil})"


def _lrn(graph: Graph, node: Node) -> str:
    options = node.layer.options
    if options.choice("norm_region", ("ACROSS_CHANNELS", "WITHIN_CHANNEL"), "ACROSS_CHANNELS") == "WITHIN_CHANNEL":
        return ""
    alpha, beta, k = (options.number(name, usual) for name, usual in (("alpha", 1.0), ("beta", 0.75), ("k", 1.0)))
    return f"nn.LocalResponseNorm({options.integer('local_size', 5)}, alpha={alpha!r}, beta={beta!r}, k={k!r})"


def _batch_norm(graph: Graph, node: Node) -> str:
    options, shape = node.layer.options, _shape(graph, node)
    named = _named(
        eps=_unless(repr(options.number("eps", 1e-5)), "1e-05"),
        fraction=_unless(repr(options.number("moving_average_fraction", 0.999)), "0.999"),
    )
    return f"BatchNorm({shape[0]}{named})"


def _scale(graph: Graph, node: Node) -> str:
    if len(node.inputs) > 1:
        return ""
    shapes = array_shapes(node.layer, [_shape(graph, node)])
    axis = axis_of(node.layer, "axis", 1, len(_shape(graph, node)) + 1)
    named = _named(axis=_unless(str(axis), "1"), bias="True" if len(shapes) > 1 else "")
    size = str(shapes[0][0]) if len(shapes[0]) == 1 else str(shapes[0])
    return f"{node.layer.kind}({size}{named})"


def _prelu(graph: Graph, node: Node) -> str:
    count = 1 if node.layer.options.flag("channel_shared", False) else _shape(graph, node)[0]
    return f"nn.PReLU({count})"


def _dropout(graph: Graph, node: Node) -> str:
    return f"nn.Dropout({node.layer.options.number('dropout_ratio', 0.5)!r})"


_MODULES: Final[dict[str, Callable[[Graph, Node], str]]] = {
    "Convolution": _convolution,
    "Deconvolution": _convolution,
    "InnerProduct": _inner_product,
    "Pooling": _pooling,
    "LRN": _lrn,
    "BatchNorm": _batch_norm,
    "Scale": _scale,
    "Bias": _scale,
    "PReLU": _prelu,
    "Dropout": _dropout,
}


# ---- expressions


def _linear_line(graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    shape = _shape(graph, node)
    axis = axis_of(node.layer, "axis", 1, len(shape) + 1)
    return f"{module}({inputs[0]})" if axis == len(shape) else f"{module}({inputs[0]}.flatten({axis}))"


def _lrn_line(_graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    if module:
        return f"{module}({inputs[0]})"
    options, x = node.layer.options, inputs[0]
    size, alpha, beta = options.integer("local_size", 5), options.number("alpha", 1.0), options.number("beta", 0.75)
    return f"{x} * (1 + {alpha!r} * F.avg_pool2d({x} * {x}, {size}, 1, {size // 2})) ** {-beta!r}"


def _batch_norm_line(_graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    if not node.layer.options.flag("use_global_stats", False):
        return f"{module}({inputs[0]})"
    return f"F.batch_norm({inputs[0]}, {module}.running_mean, {module}.running_var, eps={module}.eps)"


def _scale_line(graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    if module:
        return f"{module}({inputs[0]})"
    missing = len(_shape(graph, node)) - len(_shape(graph, node, 1))
    other = inputs[1] + (f"[..., {', '.join(['None'] * missing)}]" if missing else "")
    return f"{inputs[0]} {'*' if node.layer.kind == 'Scale' else '+'} {other}"


def _relu_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    slope = node.layer.options.number("negative_slope", 0.0)
    return f"F.leaky_relu({inputs[0]}, {slope!r})" if slope else f"F.relu({inputs[0]})"


def _power_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    power, scale, shift = (node.layer.options.number(n, d) for n, d in (("power", 1.0), ("scale", 1.0), ("shift", 0.0)))
    base = inputs[0] if scale == 1 else f"{scale!r} * {inputs[0]}"
    base = base if shift == 0 else f"{base} + {shift!r}"
    return base if power == 1 else f"({base}) ** {power!r}"


def _dropout_line(_graph: Graph, node: Node, module: str, inputs: Sequence[str]) -> str:
    options = node.layer.options
    # Caffe may leave the training as it is, and scale the test: what it gives is then this share of PyTorch's.
    share = "" if options.flag("scale_train", True) else f" * {1 - options.number('dropout_ratio', 0.5)!r}"
    return f"{module}({inputs[0]}){share}"


def _concat_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    name = "concat_dim" if node.layer.options.has("concat_dim") else "axis"
    return f"torch.cat([{', '.join(inputs)}], {axis_of(node.layer, name, 1, len(_shape(graph, node)) + 1)})"


def _slice_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    axis, sizes = slice_points(node.layer, _shape(graph, node))
    return f"torch.split({inputs[0]}, {sizes}, {axis})"


def _eltwise_line(_graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    operation = node.layer.options.choice("operation", ("PROD", "SUM", "MAX"), "SUM")
    if operation == "PROD":
        return " * ".join(inputs)
    if operation == "SUM":
        factors = node.layer.options.numbers("coeff") or [1.0] * len(inputs)
        return " + ".join(x if factor == 1 else f"{factor!r} * {x}" for factor, x in zip(factors, inputs))
    found = inputs[0]
    for other in inputs[1:]:
        found = f"torch.maximum({found}, {other})"
    return found


def _flatten_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    rank = len(_shape(graph, node)) + 1
    first, last = axis_of(node.layer, "axis", 1, rank), axis_of(node.layer, "end_axis", -1, rank)
    return f"{inputs[0]}.flatten({first})" if last == rank - 1 else f"{inputs[0]}.flatten({first}, {last})"


def _reshape_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    return f"{inputs[0]}.reshape(-1, {', '.join(map(str, reshaped(node.layer, _shape(graph, node))))})"


def _crop_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    rank = len(_shape(graph, node)) + 1
    axis, offsets = axis_of(node.layer, "axis", 2, rank), node.layer.options.integers("offset") or [0]
    places = [":"] * axis
    for place in range(axis, rank):
        offset = offsets[min(place - axis, len(offsets) - 1)]
        size = f"{inputs[1]}.shape[{place}]"
        places.append(f"{offset}:{offset} + {size}" if offset else f":{size}")
    return f"{inputs[0]}[{', '.join(places)}]"


def _softmax_line(graph: Graph, node: Node, _module: str, inputs: Sequence[str]) -> str:
    return f"torch.softmax({inputs[0]}, {axis_of(node.layer, 'axis', 1, len(_shape(graph, node)) + 1)})"


def _plain(text: str) -> Callable[[Graph, Node, str, Sequence[str]], str]:
    return lambda _graph, _node, _module, inputs: text.format(inputs[0])


_EXPRESSIONS: Final[dict[str, Callable[[Graph, Node, str, Sequence[str]], str]]] = {
    "InnerProduct": _linear_line,
    "LRN": _lrn_line,
    "BatchNorm": _batch_norm_line,
    "Scale": _scale_line,
    "Bias": _scale_line,
    "ReLU": _relu_line,
    "ELU": lambda _graph, node, _module, inputs: f"F.elu({inputs[0]}, {node.layer.options.number('alpha', 1.0)!r})",
    "Sigmoid": _plain("torch.sigmoid({})"),
    "TanH": _plain("torch.tanh({})"),
    "AbsVal": _plain("torch.abs({})"),
    "Power": _power_line,
    "Dropout": _dropout_line,
    "Concat": _concat_line,
    "Slice": _slice_line,
    "Eltwise": _eltwise_line,
    "Flatten": _flatten_line,
    "Reshape": _reshape_line,
    "Crop": _crop_line,
    "Softmax": _softmax_line,
}
