"""Class scores of a classifier, and their gradients with respect to a layer's feature maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import layer_of, names_behind
from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["ClassGradients", "class_scores", "layers_behind"]

_SAME: Final = frozenset({"Identity", "Reshape", "Squeeze", "Cast", "CheckNumerics"})
"""Operations that leave the numbers of a classifier as they are."""

_SHARES: Final = frozenset({"Softmax", "Sigmoid"})
_MIXING: Final = frozenset({"AddN", "Add", "AddV2", "Mean", "Sum", "Mul", "RealDiv", "ConcatV2", "Pack", "Unpack"})
_LEAST: Final = 1e-30
"""No probability is less where its logarithm is taken."""


def class_scores(output: Any, classes: int) -> Any:
    """Return a tensor (N, classes) float32: logits, or else the logarithms of probabilities.

    Args:
        output: of the network, (N, classes). Ziggurat takes it for logits; a network that ends with a softmax or
            sigmoid gives what that is made of, and one that averages those of several heads gives probabilities.
        classes: how many there are.
    """
    last = _before_same(output)
    if last.op.type in (*_SHARES, "LogSoftmax"):
        source = last.op.inputs[0]
        output = tf.reshape(source, [-1, classes]) if source.shape.rank != 2 else source
    elif _is_mixture_of_shares(last):
        output = tf.log(tf.maximum(tf.cast(output, tf.float32), _LEAST))
    return tf.cast(output, tf.float32)


def _before_same(tensor: Any) -> Any:
    while tensor.op.type in _SAME:
        tensor = tensor.op.inputs[0]
    return tensor


def _is_mixture_of_shares(tensor: Any) -> bool:
    """Return whether a tensor is made of softmaxes and numbers alone by sums, means and products."""
    waiting, shares, seen = [tensor], 0, set[str]()
    while waiting:
        each = _before_same(waiting.pop())
        if each.op.name in seen:
            continue
        seen.add(each.op.name)
        if each.op.type in _SHARES:
            shares += 1
        elif each.op.type in _MIXING:
            waiting.extend(each.op.inputs)
        elif each.op.type != "Const":
            return False
    return shares > 0


def layers_behind(outputs: Sequence[Any], scope: str) -> dict[str, Any]:
    """Return layer → its output, in the order of the graph.

    Args:
        outputs: tensors of a tower.
        scope: of the tower's operations; ``layer_of`` says which layer each of them is part of.
    """
    behind = names_behind(outputs)
    layers: dict[str, Any] = {}
    for operation in outputs[0].graph.get_operations():
        if operation.name in behind and operation.name.startswith(scope) and _is_batch(operation):
            layers[layer_of(operation.name.removeprefix(scope))] = operation.outputs[0]
    return layers


def _is_batch(operation: Any) -> bool:
    """Return whether an operation gives floating-point numbers for each sample: its first axis is open."""
    if not operation.outputs or operation.type == "Placeholder":
        return False
    tensor = operation.outputs[0]
    if not tensor.dtype.is_floating or (tensor.shape.rank or 0) < 2:
        return False
    return tensor.shape.as_list()[0] is None


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


class ClassGradients:
    """Gradients by the layers of a tower; nothing is added to the graph before a request.

    Args:
        layers: name → what it gives, in the order of the graph.
        outputs: name → tensor, as ``named_outputs`` gives them; only a classifier has ``probabilities``.
    """

    def __init__(self, layers: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self._tensors = layers
        self._outputs = outputs
        self._built: dict[str, tuple[Any, Any]] = {}
        self._scores: Any = None
        self._class: Any = None

    @cached_property
    def layers(self) -> dict[str, MapLayer]:
        """Layers with maps, in the order of the graph; none where the network does not classify."""
        is_classifier = "probabilities" in self._outputs
        return map_layers(self._tensors, self._outputs["output"]) if is_classifier else {}

    @cached_property
    def usual(self) -> str:
        """The layer that is looked at unless another is asked for; empty where there is none."""
        return usual_layer(self.layers)

    def fetches(self, layer: str, class_number: int) -> tuple[tuple[Any, Any], dict[Any, int]]:
        """Return the tensors of maps and gradients, both (N, H, W, C) float32, and what must be fed for them.

        Raises:
            UnknownNameError: where no layer of that name has maps.
            UsageError: where no gradient comes back to it.
        """
        if layer not in self.layers:
            raise UnknownNameError("layer with maps", layer, self.layers)
        if layer not in self._built:
            with self.layers[layer].tensor.graph.as_default(), tf.name_scope("grad_cam/"):
                self._built[layer] = self._build(layer)
        return self._built[layer], {self._class: class_number}

    def _build(self, layer: str) -> tuple[Any, Any]:
        if self._scores is None:
            classes = int(self._outputs["probabilities"].shape[-1])
            self._scores = class_scores(self._outputs["output"], classes)
            self._class = tf.placeholder(tf.int32, (), name="class")
        found = self.layers[layer]
        try:
            # Samples do not touch each other here, so the gradient of the sum is that of each sample's own score.
            (gradient,) = tf.gradients(tf.reduce_sum(self._scores[:, self._class]), found.tensor)
        except LookupError as error:  # an operation without a gradient
            raise _no_gradient(layer, str(error)) from None
        if gradient is None:
            raise _no_gradient(layer, "none")
        return _channels_last(found.tensor, found), _channels_last(tf.convert_to_tensor(gradient), found)


def _channels_last(tensor: Any, layer: MapLayer) -> Any:
    numbers = tf.cast(tensor, tf.float32)
    return tf.transpose(numbers, (0, 2, 3, 1)) if layer.channels_first else numbers


def _no_gradient(layer: str, received: str) -> UsageError:
    return UsageError(
        f"Grad-CAM needs a gradient from the score of a class back to the layer `{layer}`.",
        received=received,
        advice="Choose a layer nearer to the end of the network.",
    )
