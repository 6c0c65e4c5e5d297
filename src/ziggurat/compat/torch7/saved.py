"""Saved models of Torch as records of modules, and their arrays for the layers that modules become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.compat.caffe.geometry import array_shapes
from ziggurat.compat.caffe.graph import Graph
from ziggurat.compat.caffe.network_code import state_names
from ziggurat.compat.torch7.errors import TorchError
from ziggurat.compat.torch7.t7 import TorchObject

__all__ = ["WEIGHTED", "arrays_of", "fitted_arrays", "record_of", "weighted_modules"]

WEIGHTED: Final = (
    "SpatialConvolution", "SpatialConvolutionMM", "SpatialDilatedConvolution", "SpatialFullConvolution",
    "TemporalConvolution", "Linear", "BatchNormalization", "SpatialBatchNormalization", "LookupTable", "PReLU",
)  # fmt: skip
"""Kinds of modules with arrays."""

_CONVOLUTION: Final = ("nInputPlane", "nOutputPlane", "kW", "kH", "dW", "dH", "padW", "padH")
_ARGUMENTS: Final = {
    "SpatialConvolution": (*_CONVOLUTION, "groups"),
    "SpatialConvolutionMM": _CONVOLUTION,
    "SpatialDilatedConvolution": (*_CONVOLUTION, "dilationW", "dilationH"),
    "SpatialFullConvolution": (*_CONVOLUTION, "adjW", "adjH"),
    "TemporalConvolution": ("inputFrameSize", "outputFrameSize", "kW", "dW"),
    "TemporalMaxPooling": ("kW", "dW"),
    "SpatialMaxPooling": ("kW", "kH", "dW", "dH", "padW", "padH"),
    "SpatialAveragePooling": ("kW", "kH", "dW", "dH", "padW", "padH"),
    "SpatialAdaptiveMaxPooling": ("W", "H"),
    "SpatialAdaptiveAveragePooling": ("W", "H"),
    "SpatialZeroPadding": ("pad_l", "pad_r", "pad_t", "pad_b"),
    "SpatialCrossMapLRN": ("size", "alpha", "beta", "k"),
    "BatchNormalization": ("", "eps", "momentum", "affine"),
    "SpatialBatchNormalization": ("", "eps", "momentum", "affine"),
    "PReLU": ("nOutputPlane",),
    "Dropout": ("p",),
    "SpatialDropout": ("p",),
    "Threshold": ("threshold", "val"),
    "LeakyReLU": ("negval",),
    "ELU": ("alpha",),
    "MulConstant": ("constant_scalar",),
    "AddConstant": ("constant_scalar",),
    "Power": ("pow",),
    "Concat": ("dimension",),
    "DepthConcat": ("dimension",),
    "Parallel": ("inputDimension", "outputDimension"),
    "JoinTable": ("dimension", "nInputDims"),
    "SplitTable": ("dimension", "nInputDims"),
    "NarrowTable": ("offset", "length"),
    "SelectTable": ("index",),
    "Narrow": ("dimension", "index", "length"),
    "Select": ("dimension", "index"),
    "Squeeze": ("dim", "numInputDims"),
    "Unsqueeze": ("pos", "numInputDims"),
    "Transpose": (),
    "OneHot": ("outputSize",),
}
"""Kind → fields that are the arguments of its constructor; an empty name for one that the arrays tell."""

_RENAMED: Final = {"SpatialCrossResponseNormalization": "SpatialCrossMapLRN", "DataParallelTable": "Sequential"}
_OLD_NAMES: Final = {"padW": "padding", "padH": "padding"}
_DEEPEST: Final = 60


def record_of(saved: Any) -> dict[str, Any]:
    """Return a saved model as the record of a network file.

    Raises:
        TorchError: if it is no module of nn.
    """
    if isinstance(saved, dict):
        saved = saved.get("model", saved.get("network", saved.get("net", saved)))
    if not isinstance(saved, TorchObject):
        what = "a tensor" if isinstance(saved, np.ndarray) else type(saved).__name__
        raise TorchError(
            "The file holds no network of Torch.",
            received=what,
            advice="Give the network in Lua, with this as weights.",
        )
    return {"model": _Recorder().module(saved, 0)}


class _Recorder:
    def __init__(self) -> None:
        self._ids: dict[int, int] = {}

    def module(self, saved: Any, depth: int) -> dict[str, Any]:
        """Return the record of a module; ``saved`` in it is the object with its arrays."""
        if not isinstance(saved, TorchObject) or depth > _DEEPEST:
            raise TorchError(f"The saved network has a {type(saved).__name__} where a module of nn is expected.")
        library, _, kind = saved.kind.rpartition(".")
        kind, fields = _RENAMED.get(kind, kind), saved.fields
        inside = [self.module(each, depth + 1) for each in _list(fields.get("modules"))]
        if saved.kind.endswith("DataParallelTable"):
            inside = inside[:1]
        calls = {
            "ceil": bool(fields.get("ceil_mode")),
            "floor": fields.get("ceil_mode") is False,
            "setCountExcludePad": fields.get("count_include_pad") is False,
            "setNumInputDims": fields.get("numInputDims"),
            "unscaled": kind == "Dropout" and not fields.get("v2"),
        }
        return {
            "id": self._ids.setdefault(id(saved), len(self._ids) + 1),
            "package": library,
            "kind": kind,
            "line": 0,
            "args": _arguments(kind, fields),
            "modules": inside,
            "calls": calls,
            "has_bias": isinstance(fields.get("bias"), np.ndarray) and fields["bias"].size > 0,
            "saved": saved,
        }


def _arguments(kind: str, fields: Mapping[Any, Any]) -> list[Any]:
    weight = fields.get("weight")
    shape = weight.shape if isinstance(weight, np.ndarray) else ()
    if kind == "Linear" and len(shape) == 2:
        return [shape[1], shape[0]]
    if kind == "LookupTable" and len(shape) == 2:
        return [*shape]
    if kind in ("View", "Reshape"):
        size = fields.get("size")
        return [int(side) for side in size] if isinstance(size, np.ndarray) else _list(size)
    if kind == "Transpose":
        return [_list(pair) for pair in _list(fields.get("permutations"))]
    found = [fields.get(name, fields.get(_OLD_NAMES.get(name, ""))) for name in _ARGUMENTS.get(kind, ())]
    if kind.endswith("BatchNormalization"):
        mean = fields.get("running_mean")
        found[0] = mean.size if isinstance(mean, np.ndarray) else None
        found[3] = fields["affine"] if isinstance(fields.get("affine"), bool) else bool(shape)
    return found


def _list(table: Any) -> list[Any]:
    """Return the values of a table from 1 on."""
    found: list[Any] = []
    while isinstance(table, dict) and len(found) + 1 in table:
        found.append(table[len(found) + 1])
    return found


def arrays_of(saved: TorchObject, kind: str) -> list[np.ndarray]:
    """Return the arrays of a module, in the order of its layer's."""
    fields = saved.fields
    names = ["weight", "bias"]
    if kind.endswith("BatchNormalization"):
        names += ["running_mean", "running_var"]
    found = [fields[name] for name in names if isinstance(fields.get(name), np.ndarray) and fields[name].size]
    if kind.endswith("BatchNormalization") and "running_var" not in fields and "running_std" in fields:
        deviation = np.asarray(fields["running_std"], np.float64)  # of old files: 1 / sqrt(variance + eps)
        eps = fields.get("eps")
        found.append(1 / np.maximum(deviation, 1e-30) ** 2 - (eps if isinstance(eps, float) else 1e-5))
    if kind == "TemporalConvolution" and found and found[0].ndim == 2:
        width = fields.get("inputFrameSize")
        if isinstance(width, float) and width >= 1 and found[0].shape[1] % int(width) == 0:
            found[0] = found[0].reshape(len(found[0]), -1, int(width)).transpose(0, 2, 1)
    return found


def fitted_arrays(
    graph: Graph, owners: Mapping[str, int], given: Mapping[int, Sequence[np.ndarray]], warnings: list[str]
) -> dict[str, list[np.ndarray]]:
    """Return layer → arrays in the shapes of the layers.

    Args:
        graph: the network.
        owners: layer → id of the module that it was.
        given: id of a module → its arrays.
        warnings: gets layers without arrays.

    Raises:
        TorchError: if arrays do not fit their layer.
    """
    found: dict[str, list[np.ndarray]] = {}
    missing = []
    for node in graph.nodes:
        name = node.layer.name
        shapes = array_shapes(node.layer, [graph.shapes[number] for number in node.inputs])
        if not shapes:
            continue
        arrays = given.get(owners.get(name, -1))
        if arrays is None:
            missing.append(name)
            continue
        names = state_names(node)
        if len(arrays) != len(shapes) or any(a.size != np.prod(s, dtype=int) for a, s in zip(arrays, shapes)):
            raise TorchError(
                f"The arrays of the layer `{name}` have another size than in the network.",
                line=node.layer.line,
                received=f"{[a.shape for a in arrays]} for {', '.join(names)} of {shapes}",
                advice="Give the weights of this network, and with --classes the number that it was trained with.",
            )
        found[name] = [np.ascontiguousarray(a, np.float32).reshape(s) for a, s in zip(arrays, shapes)]
    if missing:
        warnings.append(f"Not in the weights, so they begin fresh: {', '.join(f'`{each}`' for each in missing[:20])}.")
    return found


def weighted_modules(record: Mapping[str, Any]) -> Iterator[tuple[int, str, TorchObject]]:
    """Give id, kind and object of the modules with arrays in a record of a saved model, in Torch's order."""
    if record["kind"] in WEIGHTED:
        yield record["id"], record["kind"], record["saved"]
    for each in record["modules"]:
        yield from weighted_modules(each)
