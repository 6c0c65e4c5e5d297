"""The part of a network that an import converts: its layers in order, with the shape of everything that they give.

Values have numbers: a layer that works in place gives a new one under the same name. The images are one value, the
labels are none. Shapes are without the batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.geometry import Shape, array_shapes, output_shapes
from ziggurat.compat.caffe.layers import LOSS_KINDS, Layer, NetworkText, select, stages_of
from ziggurat.compat.caffe.text import Entry, Message, Scalar

__all__ = ["LABEL", "Graph", "Loss", "Node", "build_graph", "check_size", "find_heads"]

LABEL: Final = -1
"""Number of what is to be learned: it is no value of the network."""

_MOST_OF_LAYER: Final = 1 << 26
_MOST_NUMBERS: Final = 1 << 27
_MOST_WEIGHTS: Final = 1 << 28
_KNOWN_LOSSES: Final = ("SoftmaxWithLoss", "EuclideanLoss", "L1Loss", "SigmoidCrossEntropyLoss", "ContrastiveLoss")
_USUAL_CLASSES: Final = 10
_ENDS: Final = ("Accuracy", "Silence", "HDF5Output")
_IMPLICIT: Final = ("data", "label")
"""What DIGITS adds layers for, where a network has none."""

_LABEL_NAMES: Final = ("label", "labels", "sim")
_ADVICE: Final = "Leave it out of the file, or import the part before it with --until LAYER."


@dataclass(frozen=True)
class Node:
    """A layer and its values.

    Args:
        layer: the layer.
        inputs: values that it takes.
        outputs: values that it gives.
    """

    layer: Layer
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Loss:
    """What is minimized.

    Args:
        layer: the layer.
        inputs: what it compares: values, or ``LABEL``.
        weight: in the sum of all losses.
    """

    layer: Layer
    inputs: tuple[int, ...]
    weight: float


@dataclass
class Graph:
    """What is converted.

    Args:
        name: of the network.
        nodes: layers in their order.
        image: value of the images.
        names: value → name of its blob.
        shapes: value → shape without the batch.
        outputs: values that the network gives, the one that predicts first.
        losses: what is minimized.
        sources: layers that read data.
        heads: names of layers whose outputs are the classes.
        class_count: of these layers; 0 where there are none.
        label: expression of what is to be learned.
        notes: what was left out, for people.
    """

    name: str
    nodes: list[Node]
    image: int
    names: dict[int, str]
    shapes: dict[int, Shape]
    outputs: list[int]
    losses: list[Loss]
    sources: list[Layer]
    heads: set[str] = field(default_factory=set)
    class_count: int = 0
    label: str = "y"
    notes: list[str] = field(default_factory=list)


def build_graph(
    network: NetworkText,
    shape: Shape | None,
    *,
    until: str = "",
    sizes: Mapping[str, Sequence[int]] | None = None,
    usual: Shape | None = None,
    classes: int = 0,
) -> Graph:
    """Return what of a network is converted.

    Args:
        network: all layers of the file.
        shape: of an image, (C, H, W); None for what the file says, or what fits the weights.
        until: name of the last layer that is converted, or several with commas between them; empty for all.
        sizes: layer → shape of its first array, where there are weights.
        usual: shape of an image if neither file nor weights say it; None for an error.
        classes: ``num_output`` of a last layer without one, as DIGITS leaves it open; 0 if it is not known.

    Raises:
        CaffeError: where a layer is not known, or does not fit what it takes; names the line.
    """
    walk = _Walk(_state(network))
    image = _image(walk, until)
    shape = shape or walk.shapes.get(image)
    if until:
        nodes, outputs, losses = *_until(walk, until), []
    else:
        losses = [loss for loss in walk.losses if loss.weight]
        outputs = _outputs(walk, losses, image)
        nodes = _needed(walk, outputs)
    counted = {node.layer.name for node in nodes if _is_open(node.layer)}
    nodes = [_with_count(node, sizes or {}, classes) for node in nodes]
    graph = Graph(network.name, nodes, image, walk.names, {}, outputs, losses, walk.sources, notes=walk.notes)
    if not until and not losses:
        _without_softmax(graph)
    graph.shapes = _shapes(graph, shape or _fitting_shape(graph, sizes or {}, usual))
    find_heads(graph)
    _check_counts(graph, counted)
    return graph


def _is_open(layer: Layer) -> bool:
    """Return whether a layer has no ``num_output``: DIGITS sets that of the last layer to the number of classes."""
    return layer.kind in ("Convolution", "InnerProduct") and not layer.options.has("num_output")


def _with_count(node: Node, sizes: Mapping[str, Sequence[int]], classes: int) -> Node:
    """Return a node whose layer has a ``num_output``: that of its weights, else the number of classes."""
    layer = node.layer
    if not _is_open(layer):
        return node
    size = sizes.get(layer.name, ())
    count = (size[1] if layer.options.flag("transpose", False) else size[0]) if len(size) > 1 else 0
    entry = Entry("num_output", Scalar(str(count or classes or _USUAL_CLASSES)), layer.line)
    options = Message(layer.options.line or layer.line, [*layer.options.entries, entry], layer.options.kind)
    return replace(node, layer=replace(layer, options=options))


def _check_counts(graph: Graph, counted: Set[str]) -> None:
    """Raise if a layer whose outputs are no classes has no ``num_output``."""
    for node in graph.nodes:
        if node.layer.name not in counted:
            continue
        if node.layer.name not in graph.heads:
            raise CaffeError(
                f"{_name_of_kind(node.layer)} has no `num_output`.",
                line=node.layer.line,
                advice="Only the last layer before a softmax may leave it out: it has as many as the data has classes.",
            )
        graph.notes.append(f"`{node.layer.name}` has no `num_output`: it has as many as the data has classes.")


def _state(network: NetworkText) -> NetworkText:
    """Return the layers of the training, or of the test where there is none."""
    stages = ["train"] if "train" in stages_of(network) else []
    found = select(network, "TRAIN", stages)
    if any(not layer.is_source for layer in found.layers):
        return found
    return select(network, "TEST")


class _Walk:
    """All layers of a state with numbers for their values.

    Args:
        network: the layers.
    """

    def __init__(self, network: NetworkText) -> None:
        self.nodes: list[Node] = []
        self.losses: list[Loss] = []
        self.sources: list[Layer] = []
        self.names: dict[int, str] = {}
        self.shapes: dict[int, Shape] = {}
        self.read: list[int] = []
        self.labels: set[int] = set()
        self.notes: list[str] = []
        self._current: dict[str, int] = {}
        for name, given in network.inputs.items():
            self._source(name, given)
        for layer in network.layers:
            self._add(layer)

    def _add(self, layer: Layer) -> None:
        if layer.is_source:
            self.sources.append(layer)
            shapes = _source_shapes(layer)
            for place, top in enumerate(layer.tops):
                number = self._source(top, shapes[place] if place < len(shapes) else None)
                if place and layer.kind != "Input":
                    self.labels.add(number)
            return
        inputs = tuple(self._value(layer, bottom) for bottom in layer.bottoms)
        if layer.kind in _ENDS:
            self.notes.append(f"{layer.kind} `{layer.name}` was left out: the studio measures by itself.")
            return
        if layer.kind in LOSS_KINDS or any(layer.loss_weights):
            weight = layer.loss_weights[0] if layer.loss_weights else 1.0
            self.losses.append(Loss(layer, inputs, weight))
            if layer.kind in LOSS_KINDS:
                for top in layer.tops:
                    self._new(top)
                return
        self.nodes.append(Node(layer, inputs, tuple(self._new(top) for top in layer.tops)))

    def _source(self, name: str, shape: tuple[int, ...] | None) -> int:
        number = self._new(name)
        self.read.append(number)
        if shape is not None and len(shape) > 1 and all(shape[1:]):
            self.shapes[number] = tuple(shape[1:])
        if name.lower() in _LABEL_NAMES:
            self.labels.add(number)
        return number

    def _new(self, name: str) -> int:
        number = len(self.names)
        self.names[number] = name
        self._current[name] = number
        return number

    def _value(self, layer: Layer, name: str) -> int:
        if name in _IMPLICIT and name not in self._current:
            self.notes.append(f"No layer gives `{name}`: it is that of the dataset, as DIGITS adds it.")
            return self._source(name, None)
        if name not in self._current:
            raise CaffeError(
                f"The layer `{layer.name[:60]}` takes `{name[:60]}`, which no layer before it gives.",
                line=layer.line,
                advice="Mend the name of its `bottom`, or the phase of the layer that gives it.",
            )
        return self._current[name]


def _source_shapes(layer: Layer) -> list[tuple[int, ...] | None]:
    """Return the shapes that a layer gives, with the batch, as far as the file says them."""
    if layer.kind == "Input":
        shapes = [
            tuple(each.integers("dim", 0, 1 << 20)) for each in layer.message.message("input_param").messages("shape")
        ]
        return [*shapes * (len(layer.tops) if len(shapes) == 1 else 1)]
    if layer.kind == "MemoryData":
        options = layer.message.message("memory_data_param")
        return [tuple(options.integer(name, 0, 0, 1 << 20) for name in ("batch_size", "channels", "height", "width"))]
    if layer.kind == "DummyData":
        options = layer.message.message("dummy_data_param")
        return [tuple(each.integers("dim", 0, 1 << 20)) for each in options.messages("shape")]
    return []


def _image(walk: _Walk, until: str) -> int:
    """Return the value of the images: what is read, and no label."""
    used = {number for node in walk.nodes for number in node.inputs}
    second = {number for loss in walk.losses for number in loss.inputs[1:]}
    found = [number for number in walk.read if number not in walk.labels and (number in used or number not in second)]
    needed = [number for number in found if number in used] or found
    if len(needed) != 1:
        names = ", ".join(f"`{walk.names[number]}`" for number in needed)
        raise CaffeError(
            "A network takes one input: the images, or pairs of them in its channels.",
            received=names or "none",
            line=walk.sources[0].line if walk.sources else 0,
            advice="" if needed else "Add the input, such as a layer of the type `Input`.",
        )
    for number in walk.read:
        if number != needed[0]:
            walk.labels.add(number)
    walk.losses = [
        Loss(each.layer, tuple(LABEL if value in walk.labels else value for value in each.inputs), each.weight)
        for each in walk.losses
    ]
    return needed[0]


def _until(walk: _Walk, until: str) -> tuple[list[Node], list[int]]:
    """Return the layers up to one, or to several with commas between their names, and what these give."""
    nodes = {node.layer.name: node for node in walk.nodes}
    names = [until] if until in nodes else [name.strip() for name in until.split(",")]
    for name in names:
        if name not in nodes:
            known = ", ".join(f"`{each}`" for each in list(nodes)[:40])
            raise CaffeError(f"The layer `{name[:60]}` of --until is not in the network.", advice=f"Known: {known}.")
    outputs = [nodes[name].outputs[0] for name in names]
    return _needed(walk, outputs), outputs


def _outputs(walk: _Walk, losses: Sequence[Loss], image: int) -> list[int]:
    """Return what the network gives: what losses compare, the heaviest last one first; without losses all ends."""
    for loss in losses:
        if loss.layer.kind not in _KNOWN_LOSSES:
            raise CaffeError(
                f"{_name_of_kind(loss.layer)} is not a loss that an import knows.", line=loss.layer.line, advice=_ADVICE
            )
        if loss.layer.kind == "ContrastiveLoss" and len(losses) > 1:
            raise CaffeError("A contrastive loss stands alone.", line=loss.layer.line, advice=_ADVICE)
    if losses:
        best = max(range(len(losses)), key=lambda place: (losses[place].weight, place))
        ordered = [losses[best], *losses[:best], *losses[best + 1 :]]
        numbers = [
            number for loss in ordered for number in loss.inputs[: 3 if loss.layer.kind == "ContrastiveLoss" else 2]
        ]
    else:
        used = {number for node in walk.nodes for number in node.inputs}
        reached = _reached(walk, image)
        numbers = [n for node in walk.nodes for n in node.outputs if n not in used and n in reached]
    found = list(dict.fromkeys(number for number in numbers if number != LABEL))
    if not found:
        raise CaffeError("A network gives something: a layer whose output no other layer takes, or a loss.")
    return found


def _reached(walk: _Walk, image: int) -> set[int]:
    """Return the values that depend on the images."""
    found = {image}
    for node in walk.nodes:
        if found.intersection(node.inputs):
            found.update(node.outputs)
    return found


def _needed(walk: _Walk, outputs: Sequence[int]) -> list[Node]:
    """Return the layers that outputs depend on, in their order."""
    wanted, kept = set(outputs), []
    for node in reversed(walk.nodes):
        if wanted.intersection(node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    for node in kept:
        if walk.labels.intersection(node.inputs):
            raise CaffeError(
                f"The layer `{node.layer.name[:60]}` computes with the labels, which a network does not have.",
                line=node.layer.line,
                advice=_ADVICE,
            )
    names = {id(node) for node in kept}
    left_out = [node.layer for node in walk.nodes if id(node) not in names]
    walk.notes += [
        f"{each.kind} `{each.name}` was left out: nothing that is learned needs it." for each in left_out[:50]
    ]
    return kept[::-1]


def _without_softmax(graph: Graph) -> None:
    """Leave out softmax at the end of a network without a loss: the studio takes scores before it."""
    makers = {number: node for node in graph.nodes for number in node.outputs}
    for place, number in enumerate(graph.outputs):
        node = makers.get(number)
        if (
            node is not None
            and node.layer.kind == "Softmax"
            and node.layer.options.integer("axis", 1, -4, 4) in (1, -3)
        ):
            graph.nodes.remove(node)
            graph.outputs[place] = node.inputs[0]
            graph.losses.append(Loss(node.layer, (node.inputs[0], LABEL), 1.0))
            graph.notes.append(f"Softmax `{node.layer.name}` was left out: a network gives scores, the studio shares.")


def _shapes(graph: Graph, shape: Shape) -> dict[int, Shape]:
    if not shape or not all(0 < axis <= 1 << 16 for axis in shape) or math.prod(shape) > 1 << 27:
        raise CaffeError(f"{'x'.join(map(str, shape))} is not the shape of an image, such as 3x224x224.")
    shapes: dict[int, Shape] = {graph.image: tuple(shape)}
    numbers = weights = 0
    for node in graph.nodes:
        found = output_shapes(node.layer, [shapes[number] for number in node.inputs])
        if len(found) < len(node.outputs):
            raise CaffeError(
                f"{_name_of_kind(node.layer)} gives {len(found)} top(s).",
                line=node.layer.line,
                received=f"{len(node.outputs)}",
            )
        for number, each in zip(node.outputs, found):
            if not each or math.prod(each) > _MOST_OF_LAYER:
                raise CaffeError(
                    f"The layer `{node.layer.name[:60]}` gives {math.prod(each):,} numbers of an image; "
                    f"{_MOST_OF_LAYER:,} is the most.",
                    line=node.layer.line,
                )
            shapes[number] = each
        numbers += sum(math.prod(each) for each in found)
        weights += sum(math.prod(each) for each in array_shapes(node.layer, [shapes[n] for n in node.inputs]))
        check_size(node.layer, numbers, weights)
    return shapes


def check_size(layer: Layer, numbers: int, weights: int) -> None:
    """Raise if a network is too large.

    Args:
        layer: layer up to which was counted.
        numbers: all that the layers give of an image.
        weights: of all layers.

    Raises:
        CaffeError: names the line of the layer.
    """
    if numbers > _MOST_NUMBERS or weights > _MOST_WEIGHTS:
        raise CaffeError(
            f"The network is too large up to `{layer.name[:60]}`: {weights:,} weights and {numbers:,} "
            f"numbers of an image, where {_MOST_WEIGHTS:,} and {_MOST_NUMBERS:,} are the most.",
            line=layer.line,
            advice="If it takes images of any size, give a smaller one with --input, such as --input 3x224x224.",
        )


def _fitting_shape(graph: Graph, sizes: Mapping[str, Sequence[int]], usual: Shape | None) -> Shape:
    """Return the image that the file or the weights are for, where no one says it."""
    crop = next((c for s in graph.sources if (c := s.transform.integer("crop_size", 0, 0, 1 << 16))), 0)
    first = next((n for n in graph.nodes if n.layer.kind in ("Convolution", "InnerProduct")), None)
    array = () if first is None else tuple(sizes.get(first.layer.name, ()))
    is_gray = any(s.transform.flag("force_gray", False) for s in graph.sources)
    if first is not None and first.layer.kind == "Convolution" and len(array) == 4:
        channels = array[1] * first.layer.options.integer("group", 1, 1)
    else:
        channels = 1 if is_gray else 3
    if crop:
        return (channels, crop, crop)
    if array and first is not None and first.layer.kind == "Convolution":
        for side in (28, 32, 64, 96, 128, 224, 227, 256, 299, *range(8, 513)):
            if _fits(graph, (channels, side, side), sizes):
                return (channels, side, side)
    if usual is not None:
        return usual
    line = graph.sources[0].line if graph.sources else 0
    raise CaffeError(
        "The file does not say how large its images are.",
        line=line,
        advice="Give it with --input CHANNELSxHEIGHTxWIDTH, such as --input 1x28x28.",
    )


def _fits(graph: Graph, shape: Shape, sizes: Mapping[str, Sequence[int]]) -> bool:
    """Return whether images of a shape fit the fully connected layers of the weights."""
    try:
        shapes = _shapes(graph, shape)
    except CaffeError:
        return False
    found = False
    for node in graph.nodes:
        size = sizes.get(node.layer.name)
        if node.layer.kind == "InnerProduct" and size:
            if math.prod(size) != node.layer.options.integer("num_output", 0) * math.prod(shapes[node.inputs[0]]):
                return False
            found = True
    return found


def find_heads(graph: Graph) -> None:
    """Find the layers whose outputs are classes: the last ones with weights before a softmax.

    A deconvolution that keeps their number, as at the end of a segmentation, is one too, and so is what it takes.
    """
    makers = {number: node for node in graph.nodes for number in node.outputs}
    for loss in graph.losses:
        wanted = [loss.inputs[0]] if loss.layer.kind in ("SoftmaxWithLoss", "Softmax") else []
        while wanted:
            node = makers.get(wanted.pop())
            if node is None:
                continue
            if node.layer.kind in ("Convolution", "InnerProduct", "Deconvolution"):
                classes = node.layer.options.integer("num_output", 0)
                if graph.heads and classes != graph.class_count:
                    continue
                graph.heads.add(node.layer.name)
                graph.class_count = classes
                if node.layer.kind == "Deconvolution" and graph.shapes[node.inputs[0]][0] == classes:
                    wanted += node.inputs
            elif node.layer.kind in ("Pooling", "ReLU", "Dropout", "Flatten", "Crop", "Split", "Eltwise"):
                wanted += node.inputs[: 1 if node.layer.kind == "Crop" else None]


def _name_of_kind(layer: Layer) -> str:
    return f"`{layer.kind[:60]}` of the layer `{layer.name[:60]}`"
