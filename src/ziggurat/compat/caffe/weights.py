"""Arrays of Caffe as those of a network file: checked against the layers, turned where the two differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.geometry import Shape, array_shapes
from ziggurat.compat.caffe.graph import Graph, Node
from ziggurat.compat.caffe.network_code import MEAN, state_names

__all__ = ["fitted", "random_arrays", "state_of"]

_SATURATED: Final = 1_000_000
"""Steps of a running mean that has forgotten where it began."""


def fitted(graph: Graph, given: Mapping[str, Sequence[np.ndarray]]) -> tuple[dict[str, list[np.ndarray]], list[str]]:
    """Return layer → arrays in the shapes of today, and what layers were not found or not wanted.

    Args:
        graph: the network.
        given: layer → arrays of a ``.caffemodel``; those of four old axes are accepted.

    Raises:
        CaffeError: where an array does not fit its layer.
    """
    found: dict[str, list[np.ndarray]] = {}
    missing = []
    for node in graph.nodes:
        shapes = _shapes(graph, node)
        if not shapes:
            continue
        name = node.layer.name
        if name not in given:
            missing.append(name)
            continue
        arrays = list(given[name])
        if len(arrays) != len(shapes):
            raise CaffeError(
                f"The layer `{name[:60]}` has {len(shapes)} array(s), and the weights have {len(arrays)}.",
                line=node.layer.line,
                advice="Give the weights of this network; `bias_term` must be as in the training.",
            )
        found[name] = [_fitting(node, array, shape) for array, shape in zip(arrays, shapes)]
    notes = []
    if missing:
        notes.append(f"Not in the weights, so they begin fresh: {', '.join(f'`{each}`' for each in missing[:20])}.")
    known = {node.layer.name for node in graph.nodes}
    extra = [name for name in given if name not in known]
    if extra:
        notes.append(f"Only in the weights, so left out: {', '.join(f'`{each}`' for each in extra[:20])}.")
    if not found:
        raise CaffeError(
            "The weights are of another network: no layer has a name of theirs.",
            received=", ".join(f"`{name[:40]}`" for name in list(given)[:5]),
            advice="Give the network that they were trained with.",
        )
    return found, notes


def random_arrays(graph: Graph, seed: int = 0) -> dict[str, list[np.ndarray]]:
    """Return arrays of a plausible size for every layer, for a comparison without weights."""
    source = np.random.default_rng(seed)
    found = {}
    for node in graph.nodes:
        arrays = []
        for place, shape in enumerate(_shapes(graph, node)):
            fan = max(1, math.prod(shape[1:]))
            if node.layer.kind == "BatchNorm":
                sums = (source.normal(0, 1, shape), source.uniform(0.5, 2, shape), np.full(shape, 2.0))
                arrays.append(sums[place])
            elif _is_factor(node, place, shape):
                arrays.append(source.uniform(0.5, 1.5, shape))
            elif node.layer.kind == "PReLU":
                arrays.append(source.uniform(0.1, 0.4, shape))
            else:
                deviation = (2 / fan) ** 0.5 if len(shape) > 1 else 0.1
                arrays.append(source.standard_normal(shape, np.float32) * np.float32(deviation))
        if arrays:
            found[node.layer.name] = [np.asarray(each, np.float32) for each in arrays]
    _share(graph, found)
    return found


def state_of(
    graph: Graph, modules: Mapping[str, str], arrays: Mapping[str, Sequence[np.ndarray]], mean: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return name in the network file → array, float32.

    Args:
        graph: the network.
        modules: layer → module, as the network file has them.
        arrays: layer → arrays in Caffe's shapes.
        mean: mean image of the network's size; None for none.
    """
    state: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        layer = node.layer
        if layer.name not in arrays or layer.name not in modules:
            continue
        module, given = modules[layer.name], arrays[layer.name]
        if layer.kind == "BatchNorm":
            state |= _running(module, given, layer.options.number("moving_average_fraction", 0.999))
            continue
        for name, array in zip(state_names(node), given):
            if layer.kind == "InnerProduct" and name == "weight" and layer.options.flag("transpose", False):
                array = array.T
            if layer.kind == "PReLU":
                array = array.reshape(-1)
            state.setdefault(f"{module}.{name}", np.ascontiguousarray(array, np.float32))
    if mean is not None:
        state[MEAN] = np.ascontiguousarray(mean, np.float32)
    return state


def _is_factor(node: Node, place: int, shape: Shape) -> bool:
    """Return whether an array is one of factors or variances, which are no smaller than 0."""
    definition = node.layer.definition
    if definition is None:
        return node.layer.kind == "Scale" and not place
    return len(shape) == 1 and definition.state[place] != "bias"


def _running(module: str, given: Sequence[np.ndarray], fraction: float) -> dict[str, np.ndarray]:
    """Return the running mean and variance: Caffe keeps their sums, and how much was added up."""
    count = float(given[2].reshape(-1)[0])
    factor = np.float32(0.0 if count == 0 else 1 / count)
    share = 1 - count * (1 - fraction)
    steps = _SATURATED if fraction < 1 and share < 1e-6 else round(count)
    if fraction < 1 and share >= 1e-6:
        steps = round(math.log(share) / math.log(fraction)) if fraction > 0 and count > 0 else int(count > 0)
    return {
        f"{module}.running_mean": np.asarray(given[0] * factor, np.float32),
        f"{module}.running_var": np.asarray(given[1] * factor, np.float32),
        f"{module}.num_batches_tracked": np.asarray(max(0, steps), np.int64),
    }


def _shapes(graph: Graph, node: Node) -> list[Shape]:
    return array_shapes(node.layer, [graph.shapes[number] for number in node.inputs])


def _share(graph: Graph, found: dict[str, list[np.ndarray]]) -> None:
    """Give layers that share arrays the same ones."""
    named: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        for place, rule in enumerate(node.layer.rules[: len(found.get(node.layer.name, ()))]):
            if rule.name:
                found[node.layer.name][place] = named.setdefault(rule.name, found[node.layer.name][place])


def _fitting(node: Node, array: np.ndarray, shape: Shape) -> np.ndarray:
    """Return an array in the shape of its layer; old files have four axes, the first ones of length 1."""
    if array.shape == shape:
        return array
    if array.ndim != len(shape) and _bare(array.shape) == _bare(shape):
        return array.reshape(shape)
    raise CaffeError(
        f"The layer `{node.layer.name[:60]}` has an array of shape {shape}, and the weights one of {array.shape}.",
        line=node.layer.line,
        advice="Give the weights of this network; --input is the size of the images that they were trained with.",
    )


def _bare(shape: Sequence[int]) -> tuple[int, ...]:
    first = next((place for place, axis in enumerate(shape) if axis != 1), len(shape))
    return tuple(shape[first:])
