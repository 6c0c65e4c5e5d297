"""Graph of a recorded network of Torch: its modules as layers, with the shape of everything that they give.

Dimensions of Torch count from 1 with the batch as the first, as DIGITS gives batches. Where a layer is one of Caffe,
too, it becomes that; ``ziggurat.compat.torch7.kinds`` has the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ziggurat.compat.caffe.geometry import Shape, array_shapes, output_shapes
from ziggurat.compat.caffe.graph import Graph, Node, check_size, find_heads
from ziggurat.compat.caffe.layers import Layer, ParameterRule
from ziggurat.compat.caffe.text import Message
from ziggurat.compat.torch7.criterions import add_loss, label_of
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.fillers import filler_of
from ziggurat.compat.torch7.kinds import ELEMENTWISE, KINDS
from ziggurat.compat.torch7.options import message

__all__ = ["BROKEN", "build_torch_graph", "modules_of"]

BROKEN: Final = (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError)
"""What a record raises whose modules a file has replaced by something else."""

Value = Any
"""Number of a value, or a list of such: a table of Torch."""

_Module = Mapping[str, Any]
_MOST_OF_LAYER: Final = 1 << 26
_MOST_LAYERS: Final = 5000
_MOST_PARTS: Final = 500
_LARGEST: Final = 1 << 24


def modules_of(module: _Module) -> list[_Module]:
    """Return a module and all inside it, in the order of Torch's ``listModules``."""
    found = [module]
    for each in module["modules"]:
        found += modules_of(each)
    for node in module.get("nodes", ()):
        if "module" in node:
            found += modules_of(node["module"])
    return found


def build_torch_graph(record: Mapping[str, Any], shape: Shape) -> tuple[Graph, dict[str, int]]:
    """Return the layers of a recorded network, and layer → id of the module that it was.

    Args:
        record: as ``run_lua`` returns it.
        shape: of an image, (C, H, W).

    Raises:
        TorchError: if a module is not known, or does not fit what it takes; names the line.
    """
    try:
        return _built(record, shape)
    except BROKEN as error:
        raise TorchError(
            f"The file changes its modules in a way that is not known to an import: {str(error)[:100].rstrip('.')}."
        ) from None


def _built(record: Mapping[str, Any], shape: Shape) -> tuple[Graph, dict[str, int]]:
    walk = _Walk(record["model"], shape)
    outputs = _flat(walk.run(record["model"], 0, 0))
    graph = Graph("", walk.nodes, 0, walk.names, walk.shapes, outputs, [], [], notes=walk.notes)
    graph.label = label_of(record, graph)
    add_loss(record, graph)
    find_heads(graph)
    return graph, walk.owners


class _Walk:
    """Runs a network on shapes, and notes its layers."""

    def __init__(self, model: _Module, shape: Shape) -> None:
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {0: "x"}
        self.shapes: dict[int, Shape] = {0: shape}
        self.notes: list[str] = []
        self.owners: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._numbers = self._weights = 0
        roots = [each.get("shares") or each["id"] for each in modules_of(model)]
        self._shared = {root for root in roots if roots.count(root) > 1} if len(roots) <= _MOST_LAYERS else set()

    def run(self, module: _Module, value: Value, depth: int) -> Value:
        """Return what a module gives for a value."""
        if depth > 100:
            raise TorchError("Modules are nested up to 100 deep.", line=module["line"])
        handler = _HANDLERS.get(module["kind"])
        if handler is None:
            raise TorchError(
                f"`nn.{module['kind'][:60]}` is not a module that an import knows.",
                line=module["line"],
                advice=f"Known: {', '.join(sorted(_HANDLERS))}.",
            )
        return handler(_Call(self, module, depth), value)

    def layer(
        self, call: _Call, kind: str, inputs: Sequence[int], *, base: str, options: Sequence[tuple[str, Any]] = (),
        count: int = 1, arrays: int = 0,
    ) -> list[int]:  # fmt: skip
        """Add a layer; return the values that it gives."""
        module, line = call.module, call.module["line"]
        if len(self.nodes) >= _MOST_LAYERS or count > _MOST_PARTS:
            raise TorchError(
                f"A network has at most {_MOST_LAYERS:,} layers, and a layer {_MOST_PARTS} parts.", line=line
            )
        self._counts[base] = self._counts.get(base, 0) + 1
        name = f"{base}{self._counts[base]}"
        first = len(self.names)
        for place in range(count):
            self.names[first + place] = name if count == 1 else f"{name}_{place + 1}"
        outputs = tuple(range(first, first + count))
        layer = Layer(
            name,
            kind,
            tuple(self.names[each] for each in inputs),
            tuple(self.names[each] for each in outputs),
            message(line, options),
            self._rules(module, arrays),
            (),
            line,
            Message(line),
            Message(line),
            KINDS.get(kind),
        )
        shapes = output_shapes(layer, [self.shapes[each] for each in inputs])
        for each, shape in zip(outputs, shapes):
            if not shape or math.prod(shape) > _MOST_OF_LAYER or min(shape) < 1:
                raise TorchError(
                    f"A layer gives an image of shape {shape}, which is not from one to 67 million numbers.",
                    line=line,
                )
            self.shapes[each] = shape
        self._numbers += sum(math.prod(shape) for shape in shapes)
        self._weights += sum(math.prod(each) for each in array_shapes(layer, [self.shapes[each] for each in inputs]))
        check_size(layer, self._numbers, self._weights)
        self.nodes.append(Node(layer, tuple(inputs), outputs))
        if arrays:
            self.owners[name] = module.get("shares") or module["id"]
        return list(outputs)

    def _rules(self, module: _Module, arrays: int) -> tuple[ParameterRule, ...]:
        root = module.get("shares") or module["id"]
        rate = 0.0 if module.get("frozen") else 1.0
        name = f"module {root}, " if root in self._shared else ""
        return tuple(ParameterRule(name and f"{name}array {place + 1}", rate) for place in range(arrays))


class _Call:
    """A module that is run: its arguments, and layers that it becomes."""

    def __init__(self, walk: _Walk, module: _Module, depth: int) -> None:
        self.walk, self.module, self._depth = walk, module, depth

    @property
    def kind(self) -> str:
        return str(self.module["kind"])

    def wrong(self, rule: str, received: object = "") -> TorchError:
        """Return an error at the line of the module."""
        return TorchError(f"nn.{self.kind} {rule}.", line=self.module["line"], received=str(received)[:200])

    def argument(self, place: int, default: Any = None) -> Any:
        """Return an argument, from 0; the default for nil or none."""
        args = self.module["args"]
        value = args[place] if place < len(args) else None
        return default if value is None else value

    def number(self, place: int, default: float | None = None) -> float:
        """Return an argument that is a number."""
        value = self.argument(place, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"has a number as argument {place + 1}", value)
        return float(value)

    def integer(self, place: int, default: int | None = None, least: int = 0) -> int:
        """Return an argument that is a whole number."""
        value = self.number(place, default)
        if not value.is_integer() or not least <= value <= _LARGEST:
            raise self.wrong(f"has a whole number from {least} as argument {place + 1}", value)
        return int(value)

    def setting(self, name: str) -> Any:
        """Return what a method such as ``ceil`` or ``setNumInputDims`` set; None for nothing."""
        calls = self.module["calls"]
        return calls.get(name) if isinstance(calls, dict) else None

    def shape(self, value: Value) -> Shape:
        """Return the shape of a value that is no table."""
        return self.walk.shapes[self.one(value)]

    def one(self, value: Value) -> int:
        if not isinstance(value, int):
            raise self.wrong("takes a tensor, and gets a table")
        return value

    def table(self, value: Value) -> list[Value]:
        if not isinstance(value, list):
            raise self.wrong("takes a table, and gets a tensor")
        return value

    def run(self, module: _Module, value: Value) -> Value:
        return self.walk.run(module, value, self._depth + 1)

    def layer(self, kind: str, value: Value, base: str, *options: tuple[str, Any], arrays: int = 0) -> int:
        """Add a layer with one input and one output."""
        return self.walk.layer(self, kind, [self.one(value)], base=base, options=options, arrays=arrays)[0]

    def joined(self, kind: str, values: Sequence[Value], base: str, *options: tuple[str, Any]) -> int:
        """Add a layer with several inputs."""
        return self.walk.layer(self, kind, [self.one(each) for each in values], base=base, options=options)[0]

    def axis(self, place: int, value: Value, dims_place: int | None = None) -> int:
        """Return an axis of an argument, counted with the batch as 0; with ``nInputDims``, Torch counts without it."""
        rank = len(self.shape(value))
        dims = self.integer(dims_place, 0) if dims_place is not None and self.argument(dims_place) is not None else 0
        axis = self.number(place)
        axis = axis + rank + 1 if axis < 0 else axis - (0 if dims and dims <= rank else 1)
        if not axis.is_integer() or not 1 <= axis <= rank:
            raise self.wrong(f"works on an axis behind the batch, from 2 to {rank + 1}", self.argument(place))
        return int(axis)

    def reshaped(self, value: Value, shape: Sequence[int]) -> int:
        """Return a value in another shape; itself where it has it."""
        own = self.shape(value)
        if tuple(shape) == own:
            return self.one(value)
        if math.prod(shape) != math.prod(own):
            raise self.wrong(f"keeps the {math.prod(own):,} numbers of {own}", tuple(shape))
        if len(shape) == 1:
            return self.layer("Flatten", value, "flat")
        return self.layer("Reshape", value, "reshape", ("shape", [("dim", side) for side in (0, *shape)]))


def _flat(value: Value) -> list[int]:
    if isinstance(value, int):
        return [value]
    return [number for each in value for number in _flat(each)]


# ---- containers


def _sequential(call: _Call, value: Value) -> Value:
    for each in call.module["modules"]:
        value = call.run(each, value)
    return value


def _concat(call: _Call, value: Value) -> Value:
    values = [call.run(each, value) for each in call.module["modules"]]
    if not values:
        raise call.wrong("has modules")
    axis = call.axis(0, values[0])
    sizes = {call.shape(each)[1:] for each in values}
    if call.kind == "DepthConcat" and len(sizes) > 1:
        raise call.wrong("joins images of one size", " and ".join(map(str, sizes)))
    return values[0] if len(values) == 1 else call.joined("Concat", values, "join", ("axis", axis))


def _concat_table(call: _Call, value: Value) -> Value:
    return [call.run(each, value) for each in call.module["modules"]]


def _parallel_table(call: _Call, value: Value) -> Value:
    values, modules = call.table(value), call.module["modules"]
    if len(values) != len(modules):
        raise call.wrong(f"has a module for each of {len(values)} tensors", len(modules))
    return [call.run(module, each) for module, each in zip(modules, values)]


def _parallel(call: _Call, value: Value) -> Value:
    parts = _split(call, value, call.axis(0, value))
    if len(parts) != len(call.module["modules"]):
        raise call.wrong(f"has a module for each of {len(parts)} parts", len(call.module["modules"]))
    values = [call.run(module, part) for module, part in zip(call.module["modules"], parts)]
    return call.joined("Concat", values, "join", ("axis", call.axis(1, values[0])))


def _split(call: _Call, value: Value, axis: int) -> list[int]:
    """Return the parts along an axis, which goes."""
    shape = call.shape(value)
    parts = call.walk.layer(
        call, "Slice", [call.one(value)], base="part", options=[("axis", axis)], count=shape[axis - 1]
    )
    rest = (*shape[: axis - 1], *shape[axis:])
    return [call.reshaped(part, rest or (1,)) for part in parts]


def _graph(call: _Call, value: Value) -> Value:
    module = call.module
    nodes, inputs, outputs = (module.get(name, ()) for name in ("nodes", "inputs", "outputs"))
    if not nodes:
        raise TorchError(
            "The saved network is an nn.gModule, whose connections an import does not read.",
            advice="Give its text in Lua, with this file as the weights.",
        )
    given = [value] if len(inputs) == 1 else call.table(value)
    if len(given) != len(inputs):
        raise call.wrong(f"takes {len(inputs)} tensors", len(given))
    fed = dict(zip(inputs, given))
    values: dict[int, Value] = {}
    for number, node in enumerate(nodes, start=1):
        taken = [values[each] for each in node["inputs"]]
        if number in fed:
            taken = [fed[number]]
        if not taken:
            raise TorchError("A node of nn.gModule has an input.", line=node["line"])
        if "part" in node:
            parts = call.table(taken[0])
            if not 1 <= node["part"] <= len(parts):
                raise call.wrong("splits a table into as many parts as it has")
            values[number] = parts[int(node["part"]) - 1]
        else:
            values[number] = call.run(node["module"], taken[0] if len(taken) == 1 else taken)
    found = [values[each] for each in outputs]
    return found[0] if len(found) == 1 else found


# ---- tables


def _join(call: _Call, value: Value) -> Value:
    values = call.table(value)
    return call.joined("Concat", values, "join", ("axis", call.axis(0, values[0], 1)))


def _narrow_table(call: _Call, value: Value) -> Value:
    values, first, length = call.table(value), call.integer(0, None, 1), call.integer(1, 1, 1)
    if first - 1 + length > len(values):
        raise call.wrong(f"takes a part of {len(values)} tensors", f"{first} and {length}")
    return values[first - 1 : first - 1 + length]


def _select_table(call: _Call, value: Value) -> Value:
    values, place = call.table(value), int(call.number(0))
    place = place + len(values) if place < 0 else place - 1
    if not 0 <= place < len(values):
        raise call.wrong(f"takes one of {len(values)} tensors", call.argument(0))
    return values[place]


def _combine(operation: str, factors: Sequence[float] = ()) -> Callable[[_Call, Value], Value]:
    def handler(call: _Call, value: Value) -> Value:
        values = call.table(value)
        if len(values) < 2 or (factors and len(values) != len(factors)):
            raise call.wrong("takes a table of two tensors" + ("" if factors else " or more"), len(values))
        return call.joined("Eltwise", values, "sum", ("operation", operation), ("coeff", list(factors)))

    return handler


# ---- layers with weights


def _fillers(call: _Call, limit: float, *, weight: Any = None, bias: Any = None) -> list[tuple[str, Any]]:
    usual = {"weight": weight, "bias": bias}
    return [(f"{name}_filler", filler_of(call.module, name, limit, usual[name])) for name in ("weight", "bias")]


def _convolution(call: _Call, value: Value) -> Value:
    taken, given, wide, high = (call.integer(place, None, 1) for place in range(4))
    right, down, left = call.integer(4, 1, 1), call.integer(5, 1, 1), call.integer(6, 0)
    top = call.integer(7, left)
    is_full, is_dilated = call.kind == "SpatialFullConvolution", call.kind == "SpatialDilatedConvolution"
    more: list[tuple[str, Any]] = []
    groups = call.integer(8, 1, 1) if call.module["package"] == "cudnn" and not is_full and not is_dilated else 1
    if is_full and (call.integer(8, 0) or call.integer(9, 0)):
        raise call.wrong("is imported without adjW and adjH")
    if is_dilated:
        more.append(("dilation", [call.integer(9, 1, 1), call.integer(8, 1, 1)]))
    shape = call.shape(value)
    if len(shape) != 3 or shape[0] != taken:
        raise call.wrong(f"takes images of {taken} channels", shape)
    limit = 1 / math.sqrt(wide * high * (taken // groups if not is_full else taken))
    usual = [("type", "uniform"), ("min", -limit), ("max", limit)] if is_full else None
    return call.layer(
        "Deconvolution" if is_full else "Convolution", value, "up" if is_full else "conv", ("num_output", given),
        ("kernel_h", high), ("kernel_w", wide), ("stride_h", down), ("stride_w", right), ("pad_h", top),
        ("pad_w", left), ("group", groups), ("bias_term", call.module["has_bias"]), *more,
        *_fillers(call, limit, weight=usual, bias=usual),
        arrays=2 if call.module["has_bias"] else 1,
    )  # fmt: skip


def _linear(call: _Call, value: Value) -> Value:
    taken, given = call.integer(0, None, 1), call.integer(1, None, 1)
    if call.shape(value) == (taken, 1, 1):  # rows of a table, as images of one pixel
        value = call.reshaped(value, [taken])
    if call.shape(value) != (taken,):
        raise call.wrong(f"takes rows of {taken:,} numbers", call.shape(value))
    has_bias = call.module["has_bias"]
    options = [("num_output", given), ("bias_term", has_bias), *_fillers(call, 1 / math.sqrt(taken))]
    return call.layer("InnerProduct", value, "fc", *options, arrays=2 if has_bias else 1)


def _temporal(call: _Call, value: Value) -> Value:
    width, given, kernel, stride = (call.integer(place, 1 if place == 3 else None, 1) for place in range(4))
    options = [("width", width), ("num_output", given), ("kernel", kernel), ("stride", stride)]
    fillers = _fillers(call, 1 / math.sqrt(kernel * width))
    return call.layer("TemporalConvolution", value, "conv", *options, *fillers, arrays=2)


def _temporal_pool(call: _Call, value: Value) -> Value:
    kernel = call.integer(0, None, 1)
    stride = call.integer(1, kernel, 1)
    return call.layer("TemporalMaxPooling", value, "pool", ("kernel", kernel), ("stride", stride))


def _norm(call: _Call, value: Value) -> Value:
    options: list[tuple[str, Any]] = [("channels", call.integer(0, None, 1)), ("eps", call.number(1, 1e-5))]
    options.append(("momentum", call.number(2, 0.1)))
    if call.argument(3, True) is False:
        return call.layer(f"{call.kind} without weights", value, "bn", *options, arrays=2)
    usual = [("type", "uniform"), ("min", 0.0), ("max", 1.0)]
    fillers = _fillers(call, 1.0, weight=usual, bias=[("type", "usual")])
    return call.layer(call.kind, value, "bn", *options, *fillers, arrays=4)


def _prelu(call: _Call, value: Value) -> Value:
    count = call.integer(0, 0)
    if count and count != call.shape(value)[0]:
        raise call.wrong(f"has {count} channels", call.shape(value))
    usual = [("type", "constant"), ("value", 0.25)]
    filler = filler_of(call.module, "weight", 1.0, usual)
    return call.layer("PReLU", value, "prelu", ("channel_shared", not count), ("filler", filler), arrays=1)


def _look_up(call: _Call, value: Value) -> Value:
    count, width = call.integer(0, None, 1), call.integer(1, None, 1)
    filler = filler_of(call.module, "weight", 1.0, [("type", "usual")])
    options = [("count", count), ("width", width), ("bias_term", True), ("weight_filler", filler)]
    return call.layer("LookupTable", value, "table", *options, arrays=1)


# ---- pooling and normalization


def _pooling(call: _Call, value: Value) -> Value:
    wide, high = call.integer(0, None, 1), call.integer(1, None, 1)
    right, down = call.integer(2, wide, 1), call.integer(3, high, 1)
    left, top = call.integer(4, 0), call.integer(5, 0)
    ceil = bool(call.setting("ceil")) or (call.module["package"] == "inn" and not call.setting("floor"))
    options: list[tuple[str, Any]] = [("kernel", [high, wide]), ("stride", [down, right]), ("pad", [top, left])]
    options += [("ceil", ceil), ("counts_pad", not call.setting("setCountExcludePad"))]
    return call.layer(call.kind, value, "pool", *options)


def _adaptive(call: _Call, value: Value) -> Value:
    return call.layer(call.kind, value, "pool", ("size", [call.integer(0, None, 1), call.integer(1, None, 1)]))


def _lrn(call: _Call, value: Value) -> Value:
    options = (("local_size", call.integer(0, 5, 1)), ("alpha", call.number(1, 1e-4)), ("beta", call.number(2, 0.75)))
    return call.layer("LRN", value, "norm", *options, ("k", call.number(3, 1.0)))


def _padding(call: _Call, value: Value) -> Value:
    left = int(call.number(0))
    sides = [left, *(int(call.number(place, left)) for place in (1, 2, 3))]
    if max(map(abs, sides)) > 1 << 16:
        raise call.wrong("pads by at most 65,536", sides)
    return call.layer("SpatialZeroPadding", value, "pad", ("pad", sides))


def _dropout(call: _Call, value: Value) -> Value:
    share = call.number(0, 0.5)
    if not 0 <= share < 1:
        raise call.wrong("leaves out a share from 0 to below 1", share)
    options = [("dropout_ratio", share), *([("scale_train", False)] if call.setting("unscaled") else [])]
    return call.layer("Dropout" if call.kind == "Dropout" else "SpatialDropout", value, "drop", *options)


# ---- shapes


def _sizes(call: _Call) -> list[int]:
    """Return the sizes that View and Reshape are called with: numbers, or one table."""
    args = [each for each in call.module["args"] if not isinstance(each, bool) and each is not None]
    if len(args) == 1 and isinstance(args[0], list):
        args = args[0]
    if not args or not all(isinstance(each, int | float) and float(each).is_integer() and each >= -1 for each in args):
        raise call.wrong("has sizes", args)
    return [int(each) for each in args]


def _view(call: _Call, value: Value) -> Value:
    sizes, shape = _sizes(call), call.shape(value)
    dims = call.setting("setNumInputDims")
    if not dims and sizes[0] == -1:
        if len(sizes) == 1:
            raise call.wrong("(-1) joins the images of a batch: write nn.View(-1):setNumInputDims(3)")
        sizes = sizes[1:]  # the batch
    elif isinstance(dims, int | float) and dims != len(shape):
        raise call.wrong(f"counts the {len(shape)} dimensions of an image with setNumInputDims", dims)
    if sizes.count(-1) > 1 or 0 in sizes:
        raise call.wrong("has one open size", sizes)
    known = math.prod(side for side in sizes if side != -1)
    if -1 in sizes and math.prod(shape) % known:
        raise call.wrong(f"divides the {math.prod(shape):,} numbers of {shape}", sizes)
    return call.reshaped(value, [math.prod(shape) // known if side == -1 else side for side in sizes])


def _squeeze(call: _Call, value: Value) -> Value:
    shape = call.shape(value)
    if call.argument(0) is None:
        return call.reshaped(value, [side for side in shape if side != 1] or [1])
    axis = call.axis(0, value, 1)
    if shape[axis - 1] != 1:
        return call.one(value)
    return call.reshaped(value, [*shape[: axis - 1], *shape[axis:]] or [1])


def _unsqueeze(call: _Call, value: Value) -> Value:
    shape = call.shape(value)
    dims = call.integer(1, 0)
    place = call.integer(0, None, 1) - (1 if dims else 2)
    if not 0 <= place <= len(shape):
        raise call.wrong("adds an axis behind the batch", call.argument(0))
    return call.reshaped(value, [*shape[:place], 1, *shape[place:]])


def _transpose(call: _Call, value: Value) -> Value:
    order = list(range(len(call.shape(value)) + 1))
    for pair in call.module["args"]:
        if not isinstance(pair, list) or len(pair) != 2 or not all(each in range(2, len(order) + 1) for each in pair):
            raise call.wrong("swaps pairs of axes behind the batch", pair)
        one, other = (int(each) - 1 for each in pair)
        order[one], order[other] = order[other], order[one]
    return call.layer("Transpose", value, "turned", ("order", order))


def _narrow(call: _Call, value: Value) -> Value:
    axis = call.axis(0, value)
    side, first, length = call.shape(value)[axis - 1], int(call.number(1)), int(call.number(2, 1))
    first = first + side if first < 0 else first - 1
    length = side - first + length + 1 if length < 0 else length
    return call.layer("Narrow", value, "part", ("part", [axis, first, length]))


def _select(call: _Call, value: Value) -> Value:
    axis, shape = call.axis(0, value), call.shape(value)
    place = int(call.number(1))
    place = place + shape[axis - 1] if place < 0 else place - 1
    part = call.layer("Narrow", value, "part", ("part", [axis, place, 1]))
    return call.reshaped(part, [*shape[: axis - 1], *shape[axis:]] or [1])


# ---- number by number


def _threshold(call: _Call, value: Value) -> Value:
    return call.layer("Threshold", value, "relu", ("value", [call.number(0, 1e-6), call.number(1, 0.0)]))


def _leaky(call: _Call, value: Value) -> Value:
    # LeakyReLU(true) works in place with the usual slope
    slope = 0.01 if isinstance(call.argument(0), bool) else call.number(0, 0.01)
    return call.layer("ReLU", value, "relu", ("negative_slope", slope))


def _power(call: _Call, value: Value) -> Value:
    options = {
        "MulConstant": lambda: [("scale", call.number(0))],
        "AddConstant": lambda: [("shift", call.number(0))],
        "Power": lambda: [("power", call.number(0))],
        "Square": lambda: [("power", 2.0)],
        "Sqrt": lambda: [("power", 0.5)],
    }[call.kind]()
    return call.layer("Power", value, "scaled", *options)


def _plain(kind: str, base: str, *options: tuple[str, Any]) -> Callable[[_Call, Value], Value]:
    return lambda call, value: call.layer(kind, value, base, *options)


def _soft_max(call: _Call, value: Value) -> Value:
    return call.layer("LogSoftMax" if "Log" in call.kind else "Softmax", value, "shares")


def _same(_call: _Call, value: Value) -> Value:
    return value


_HANDLERS: Final[dict[str, Callable[[_Call, Value], Value]]] = {
    "Sequential": _sequential, "Concat": _concat, "DepthConcat": _concat, "ConcatTable": _concat_table,
    "ParallelTable": _parallel_table, "Parallel": _parallel, "gModule": _graph, "JoinTable": _join,
    "SplitTable": lambda call, value: _split(call, value, call.axis(0, value, 1)),
    "NarrowTable": _narrow_table, "SelectTable": _select_table, "FlattenTable": lambda _call, value: _flat(value),
    "CAddTable": _combine("SUM"), "CMulTable": _combine("PROD"), "CMaxTable": _combine("MAX"),
    "CSubTable": _combine("SUM", (1.0, -1.0)),
    **dict.fromkeys(
        ("SpatialConvolution", "SpatialConvolutionMM", "SpatialDilatedConvolution", "SpatialFullConvolution"),
        _convolution,
    ),
    "Linear": _linear, "TemporalConvolution": _temporal, "TemporalMaxPooling": _temporal_pool,
    "BatchNormalization": _norm, "SpatialBatchNormalization": _norm, "PReLU": _prelu, "LookupTable": _look_up,
    "OneHot": lambda call, value: call.layer("OneHot", value, "words", ("width", call.integer(0, None, 1))),
    "SpatialMaxPooling": _pooling, "SpatialAveragePooling": _pooling,
    "SpatialAdaptiveMaxPooling": _adaptive, "SpatialAdaptiveAveragePooling": _adaptive,
    "SpatialCrossMapLRN": _lrn, "SpatialZeroPadding": _padding, "Dropout": _dropout, "SpatialDropout": _dropout,
    "View": _view, "Reshape": _view, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose,
    "Narrow": _narrow, "Select": _select,
    **dict.fromkeys(("MulConstant", "AddConstant", "Power", "Square", "Sqrt"), _power),
    "ReLU": _plain("ReLU", "relu"), "Threshold": _threshold, "Abs": _plain("AbsVal", "abs"),
    "LeakyReLU": _leaky,
    "ELU": lambda call, value: call.layer("ELU", value, "elu", ("alpha", call.number(0, 1.0))),
    "Tanh": _plain("TanH", "tanh"), "Sigmoid": _plain("Sigmoid", "sigmoid"),
    **{kind: _plain(kind, kind.lower()) for kind in ELEMENTWISE},
    **dict.fromkeys(("SoftMax", "SpatialSoftMax", "LogSoftMax", "SpatialLogSoftMax"), _soft_max),
    **dict.fromkeys(("Identity", "Contiguous", "Copy"), _same),
}  # fmt: skip
