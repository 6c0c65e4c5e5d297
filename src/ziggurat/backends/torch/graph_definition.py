"""Graph of a network for TensorBoard: a ``GraphDef`` (tensorflow/core/framework/graph.proto) of its operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ziggurat.backends.torch.network import MODEL
from ziggurat.backends.torch.recording import Operation
from ziggurat.protobuf_wire import bytes_field, integer_field

__all__ = ["graph_definition"]

_MOST_BYTES: Final = 32 << 20
"""Some 100,000 operations; TensorBoard's page stands still for minutes long before."""

_NODE, _VERSIONS, _PRODUCER = 1, 4, 1
_NAME, _KIND, _INPUT, _ATTRIBUTE = 1, 2, 3, 5
_KEY, _VALUE = 1, 2
_LIST, _SHAPES, _SIDE, _SIZE = 1, 7, 2, 1

_INPUT_NAME: Final = "input"
_GRAPH_VERSION: Final = 22
"""Of the format, as PyTorch and TensorFlow 1 wrote it."""


def graph_definition(
    operations: Sequence[Operation], input_shape: tuple[int, ...], *, most_bytes: int = _MOST_BYTES
) -> tuple[bytes, str]:
    """Return operations as a serialized ``GraphDef`` with the shapes of their tensors, and the weights they read.

    Args:
        operations: of one prediction.
        input_shape: of its samples, N first.
        most_bytes: of the result.

    Returns:
        The graph and an empty text; or no bytes, and why there are none.
    """
    nodes = b"".join(bytes_field(_NODE, each) for each in _nodes(operations, input_shape))
    graph = nodes + bytes_field(_VERSIONS, integer_field(_PRODUCER, _GRAPH_VERSION))
    if len(graph) > most_bytes:
        problem = (
            f"The graph is {len(graph) / (1 << 20):,.1f} MiB large; TensorBoard is given at most "
            f"{most_bytes / (1 << 20):,.1f} MiB."
        )
        return b"", problem
    return graph, ""


def _nodes(operations: Sequence[Operation], input_shape: tuple[int, ...]) -> Iterator[bytes]:
    count = input_shape[0]
    yield _node(_INPUT_NAME, "Placeholder", [], [-1, *input_shape[1:]])
    told = set[str]()
    for operation in operations:
        weights = [f"{MODEL}{name.replace('.', '/')}" for name in operation.weights]
        for name in weights:
            if name not in told:
                told.add(name)
                yield _node(name, "Parameter", [], None)
        before = [f"{MODEL}{operations[place].name}" for place in operation.inputs]
        # What no operation and no weight made comes from outside.
        inputs = [*(before or [_INPUT_NAME]), *weights]
        shape = [-1 if not axis and side == count else side for axis, side in enumerate(operation.shape)]
        yield _node(f"{MODEL}{operation.name}", operation.kind, inputs, shape)


def _node(name: str, kind: str, inputs: Sequence[str], shape: Sequence[int] | None) -> bytes:
    content = bytes_field(_NAME, name.encode()) + bytes_field(_KIND, kind.encode())
    content += b"".join(bytes_field(_INPUT, each.encode()) for each in inputs)
    if shape is not None:
        sides = b"".join(bytes_field(_SIDE, integer_field(_SIZE, side)) for side in shape)
        value = bytes_field(_LIST, bytes_field(_SHAPES, sides))
        entry = bytes_field(_KEY, b"_output_shapes") + bytes_field(_VALUE, value)
        content += bytes_field(_ATTRIBUTE, entry)
    return content
