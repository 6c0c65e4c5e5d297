"""Network description: operations with shapes, layers with their weights, cost, and TensorBoard's graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.backends.tensorflow.graph import JobGraph
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import layer_of, names_behind

__all__ = [
    "GraphDescription",
    "LayerRow",
    "OperationRow",
    "VariableRow",
    "describe_graph",
    "graph_for_tensorboard",
    "light_graph",
]

_SCOPE: Final = "val/"
_LARGE_BYTES: Final = 1024
"""A constant with more bytes says nothing in a drawing of a graph."""

_MOST_CONSTANT_BYTES: Final = 512 << 20
"""TensorFlow copies all constants several times to give a graph away, and cannot at all beyond 2 GiB."""

_MOST_GRAPH_BYTES: Final = 32 << 20
"""Some 100,000 operations; TensorBoard's page stands still for minutes long before."""

_PLUMBING: Final = frozenset({"Const", "Identity", "NoOp", "ReadVariableOp", "VarHandleOp", "Assert", "Shape"})


@dataclass(frozen=True)
class OperationRow:
    """One operation of the forward graph.

    Args:
        name: without the scope of its stage.
        kind: its type, such as ``Conv2D``.
        shape: of its first output, None for what is open; None where it is unknown.
        inputs: names of the operations that it reads.
    """

    name: str
    kind: str
    shape: tuple[int | None, ...] | None
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class VariableRow:
    """One variable.

    Args:
        name: with its scope.
        shape: its shape.
        count: how many numbers it has.
        trainable: whether it is trained.
    """

    name: str
    shape: tuple[int, ...]
    count: int
    trainable: bool


@dataclass(frozen=True)
class LayerRow:
    """One layer: a scope that holds variables, or that an image of the graph shows as one box.

    Args:
        name: its scope.
        shape: of its last operation's output.
        parameters: numbers in its trainable variables.
        operations: how many operations it has.
    """

    name: str
    shape: tuple[int | None, ...] | None
    parameters: int
    operations: int


@dataclass(frozen=True)
class GraphDescription:
    """What there is to know of a network before it is trained.

    Args:
        operations: of the validation tower, in the order of the graph.
        layers: in the order in which they first appear.
        variables: all of the model's.
        parameters: numbers in all trainable variables.
        multiply_adds: of one sample, forward; counts convolutions and matrix products.
        outputs: shape of each output.
        scalars: names of the user's scalar summaries.
    """

    operations: list[OperationRow]
    layers: list[LayerRow]
    variables: list[VariableRow]
    parameters: int
    multiply_adds: int
    outputs: list[tuple[int | None, ...] | None]
    scalars: list[str]


def describe_graph(built: JobGraph) -> GraphDescription:
    """Describe the validation tower of a built graph: the network as it predicts, with its loss."""
    operations = [each for each in built.graph.get_operations() if each.name.startswith(_SCOPE)]
    shown = [each for each in operations if each.type not in _PLUMBING]
    forward = names_behind(built.validation.outputs)
    trainable = {each.op.name for each in built.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
    slots = built.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    variables = [
        VariableRow(each.op.name, tuple(each.shape.as_list()), _count(each.shape.as_list()), each.op.name in trainable)
        for each in slots
        if each.op.name.startswith("model/") and each.op.name.rsplit("/", 1)[0] not in trainable
    ]
    return GraphDescription(
        operations=[_row(each) for each in shown],
        layers=_layers([each for each in shown if each.name in forward], variables),
        variables=variables,
        parameters=sum(row.count for row in variables if row.trainable),
        multiply_adds=sum(_multiply_adds(each) for each in shown),
        outputs=[_shape(tensor) for tensor in built.validation.outputs],
        scalars=sorted(built.validation.scalars),
    )


def graph_for_tensorboard(
    graph: Any, *, most_constant_bytes: int = _MOST_CONSTANT_BYTES, most_bytes: int = _MOST_GRAPH_BYTES
) -> tuple[bytes, str]:
    """Return a graph as a serialized ``GraphDef`` with the shapes of its tensors and without large constants.

    Args:
        graph: the whole graph of a job.
        most_constant_bytes: of all constants, before the large ones are left out.
        most_bytes: of the result.

    Returns:
        The graph and an empty text; or no bytes, and why there are none.
    """
    constant_bytes = sum(_constant_bytes(each) for each in graph.get_operations() if each.type == "Const")
    if constant_bytes > most_constant_bytes:
        return b"", _too_large("The constants of the network are", constant_bytes, most_constant_bytes)
    try:
        definition = light_graph(graph)
    except ValueError as error:  # functions too may hold constants, of more than a message can have
        return b"", f"TensorFlow must give the graph away (received: {error})"
    size_bytes = definition.ByteSize()
    if size_bytes > most_bytes:
        return b"", _too_large("The graph is", size_bytes, most_bytes)
    return definition.SerializeToString(), ""


def light_graph(graph: Any) -> Any:
    """Return the ``GraphDef`` of a graph with the shapes of its tensors and without large constants."""
    definition = graph.as_graph_def(add_shapes=True)
    for node in definition.node:
        if node.op == "Const" and len(node.attr["value"].tensor.tensor_content) > _LARGE_BYTES:
            node.attr["value"].tensor.tensor_content = b"(left out)"
    return definition


def _constant_bytes(operation: Any) -> int:
    output = operation.outputs[0]
    return _count(output.shape.as_list()) * output.dtype.size if output.shape.is_fully_defined() else 0


def _too_large(what: str, size_bytes: int, most_bytes: int) -> str:
    return (
        f"{what} {size_bytes / (1 << 20):,.1f} MiB large; TensorBoard is given at most "
        f"{most_bytes / (1 << 20):,.1f} MiB."
    )


def _row(operation: Any) -> OperationRow:
    shape = _shape(operation.outputs[0]) if operation.outputs else None
    inputs = tuple(_behind_identities(source.op).name.removeprefix(_SCOPE) for source in operation.inputs)
    return OperationRow(operation.name.removeprefix(_SCOPE), operation.type, shape, inputs)


def _behind_identities(operation: Any) -> Any:
    """Return the operation whose value it is: a dropout that predicts, for one, only hands it on."""
    while operation.type == "Identity" and operation.inputs:
        operation = operation.inputs[0].op
    return operation


def _layers(operations: Iterable[Any], variables: list[VariableRow]) -> list[LayerRow]:
    layers: dict[str, list[Any]] = {}
    for operation in operations:
        name = operation.name.removeprefix(_SCOPE).removeprefix("model/")
        layers.setdefault(layer_of(name) if "/" in name else "", []).append(operation)
    layers.pop("", None)
    return [
        LayerRow(
            name,
            _shape(members[-1].outputs[0]) if members[-1].outputs else None,
            sum(row.count for row in variables if row.trainable and row.name.startswith(f"model/{name}/")),
            len(members),
        )
        for name, members in layers.items()
    ]


def _multiply_adds(operation: Any) -> int:
    """Return the multiply-adds of one sample, for the operations that dominate."""
    if operation.type == "MatMul":
        return _rows_of_sample(operation) * _count(operation.inputs[1].shape.as_list())
    if operation.type.startswith("BatchMatMul"):
        inner = operation.inputs[0].shape.as_list()[-2 if operation.get_attr("adj_x") else -1]
        return (inner or 0) * _count(operation.outputs[0].shape.as_list()[1:])
    if operation.type in ("Conv2D", "DepthwiseConv2dNative"):
        height, width = operation.outputs[0].shape.as_list()[1:3]
        return (height or 0) * (width or 0) * _count(operation.inputs[1].shape.as_list())
    if operation.type == "Conv2DBackpropInput":  # the forward pass of a transposed convolution
        height, width = operation.inputs[2].shape.as_list()[1:3]
        return (height or 0) * (width or 0) * _count(operation.inputs[1].shape.as_list())
    return 0


def _rows_of_sample(operation: Any) -> int:
    """Return the rows of a matrix product that one sample has: as many as the product is reshaped to, else one.

    A dense layer on (N, L, width) multiplies (N L, width), and reshapes the product to (N, L, outputs).
    """
    shapes = [each.outputs[0].shape for each in operation.outputs[0].consumers() if each.type == "Reshape"]
    known = [shape.as_list() for shape in shapes if shape.rank is not None]
    return max((_count(shape[1:-1]) for shape in known if len(shape) > 2), default=1)


def _count(shape: Iterable[int | None]) -> int:
    count = 1
    for side in shape:
        count *= side or 0
    return count


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
