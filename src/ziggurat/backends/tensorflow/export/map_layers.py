"""Layers with feature maps of a convolution, (N, H, W, C) or (N, C, H, W), detected from the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.backends.tensorflow.ancestry import names_behind
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["MapLayer", "map_layers", "usual_layer"]

_RANK: Final = 4
_CONVOLUTIONS: Final = frozenset({"Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput"})
_CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


@dataclass(frozen=True)
class MapLayer:
    """A layer with maps.

    Args:
        tensor: what it gives.
        channels_first: whether that is (N, C, H, W) instead of (N, H, W, C).
    """

    tensor: Any
    channels_first: bool

    @property
    def size(self) -> tuple[int | None, int | None]:
        """Height and width of a map; None where they are open."""
        return _size(self.tensor, self.channels_first)


def map_layers(layers: Mapping[str, Any], scores: Any) -> dict[str, MapLayer]:
    """Return name → layer of those with maps, in the order of the graph.

    Args:
        layers: name → what it gives.
        scores: of the classes; what they are not made of is left out.
    """
    behind = names_behind([scores])
    found: dict[str, MapLayer] = {}
    for name, tensor in layers.items():
        if tensor.shape.rank != _RANK or tensor.op.name not in behind or not _convolutions(tensor):
            continue
        layer = MapLayer(tensor, _is_channels_first(tensor))
        if layer.size != (1, 1):
            found[name] = layer
    return found


def usual_layer(layers: Mapping[str, MapLayer]) -> str:
    """Return the name of the layer that is looked at unless another is asked for; empty where there is none.

    It is the last with maps as large as those of the last convolution: behind its activation, before it is pooled.
    """
    if not layers:
        return ""
    *_, last = layers.values()
    made = [each for each in _convolutions(last.tensor) if _map_size(each.outputs[0]) != (1, 1)]
    if not made:
        return [*layers][-1]
    size, name = _map_size(made[-1].outputs[0]), made[-1].name
    behind = [key for key, layer in layers.items() if layer.size == size and name in names_behind([layer.tensor])]
    return behind[-1] if behind else [*layers][-1]


def _convolutions(tensor: Any) -> list[Any]:
    """Return the convolutions that a tensor is made of, in the order of the graph."""
    names = names_behind([tensor])
    return [each for each in tensor.graph.get_operations() if each.type in _CONVOLUTIONS and each.name in names]


def _map_size(tensor: Any) -> tuple[int | None, int | None]:
    return _size(tensor, _is_channels_first(tensor))


def _size(tensor: Any, channels_first: bool) -> tuple[int | None, int | None]:
    shape = tensor.shape.as_list()
    return (shape[2], shape[3]) if channels_first else (shape[1], shape[2])


def _is_channels_first(tensor: Any) -> bool:
    """Return whether a tensor of four axes is (N, C, H, W): the nearest operation that says so decides."""
    seen = set[str]()
    waiting = [tensor]
    while waiting:
        operation = waiting.pop(0).op
        if operation.name in seen:
            continue
        seen.add(operation.name)
        said = _said(operation)
        if said is not None:
            return said
        waiting.extend(source for source in operation.inputs if source.shape.rank == _RANK)
    return False


def _said(operation: Any) -> bool | None:
    """Return whether an operation says that channels come first; None where it says nothing."""
    if operation.type == "Transpose":
        order = tf.get_static_value(operation.inputs[1])
        turned = () if order is None else tuple(int(axis) for axis in order)
        return turned == _CHANNELS_FIRST if turned in (_CHANNELS_FIRST, _CHANNELS_LAST) else None
    if "data_format" not in operation.node_def.attr:
        return None
    return operation.get_attr("data_format") == b"NCHW"
