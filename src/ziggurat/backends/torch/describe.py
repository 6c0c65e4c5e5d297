"""Network description: operations with shapes, layers with their weights, and what one sample costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from ziggurat.backends.torch.graph_definition import graph_definition
from ziggurat.backends.torch.network import MODEL, Network, channels_last, make_network
from ziggurat.backends.torch.recording import LayerRun, Operation, Recorder
from ziggurat.backends.torch.state import weights_of
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.capabilities import DescribedGraph
from ziggurat.engine.restore_plan import freezes

__all__ = ["LayerRow", "NetworkDescription", "OperationRow", "VariableRow", "describe_network", "described_with_graph"]

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class OperationRow:
    """One operation of a prediction.

    Args:
        name: with the scope of its layer.
        kind: name of the function, such as ``conv2d``.
        shape: of its first output, None for the samples of a batch.
        inputs: names of the operations that it reads.
    """

    name: str
    kind: str
    shape: Shape
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class VariableRow:
    """One weight or buffer.

    Args:
        name: in checkpoints.
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
    """One layer: a module that holds no other one, or an operation that makes a layer by itself.

    Args:
        name: of the module, such as ``layer1.0.conv1``.
        shape: of its output, None for the samples of a batch.
        parameters: numbers in its trainable weights.
        operations: how many operations it has.
    """

    name: str
    shape: Shape
    parameters: int
    operations: int


@dataclass(frozen=True)
class NetworkDescription:
    """What there is to know of a network before it is trained.

    Args:
        operations: of a prediction, in the order in which they run.
        layers: in the order in which they end.
        variables: all weights and buffers.
        parameters: numbers in all trainable weights.
        multiply_adds: of one sample, forward; counts convolutions, matrix products and attention.
        outputs: shape of each output.
        scalars: names of the numbers that it shows.
    """

    operations: list[OperationRow]
    layers: list[LayerRow]
    variables: list[VariableRow]
    parameters: int
    multiply_adds: int
    outputs: list[Shape]
    scalars: list[str]


def describe_network(request: ProgramRequest) -> Mapping[str, Any]:
    """Describe the network of a request as it predicts.

    Raises:
        NetworkCodeError: where the user's network fails.
    """
    return asdict(_described(request)[0])


def described_with_graph(request: ProgramRequest) -> DescribedGraph:
    """Describe the network of a request, and give the graph of its prediction for TensorBoard.

    Raises:
        NetworkCodeError: where the user's network fails.
    """
    found, network, recorder = _described(request)
    graph, problem = graph_definition(recorder.operations, tuple(network.zeros().shape))
    return DescribedGraph(description=asdict(found), graph=graph, problem=problem)


def _described(request: ProgramRequest) -> tuple[NetworkDescription, Network, Recorder]:
    network = make_network(request)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as shapes_alone:
            run = _run(network, shapes_alone.from_tensor(network.zeros()))
    except Exception:  # it asks for the numbers of a tensor, or it has kept one of this run
        network = make_network(request)
        run = _run(network, network.zeros())
    recorder, outputs, multiply_adds = run
    count = len(network.zeros())
    variables = list(_variables(network, request))
    counts = {row.name.removeprefix(MODEL): row.count for row in variables if row.trainable}
    found = NetworkDescription(
        operations=[_row(each, recorder, count) for each in recorder.operations],
        layers=[_layer(each, recorder, count, counts) for each in recorder.layers],
        variables=variables,
        parameters=sum(row.count for row in variables if row.trainable),
        multiply_adds=multiply_adds // count,
        outputs=[_open(shape, count) for shape in outputs],
        scalars=sorted(network.scalar_names),
    )
    return found, network, recorder


def _run(network: Network, samples: torch.Tensor) -> tuple[Recorder, list[tuple[int, ...]], int]:
    """Return a run, the shapes of its outputs, and its multiply-adds."""
    network.module.eval()
    flops = FlopCounterMode(display=False, custom_mapping=_FLOPS)
    with flops, Recorder(network.module, network.path) as recorder, torch.no_grad():
        outputs = network.predict(samples)
    # The order of the axes is that of programs, and no operation of the network.
    return recorder, [tuple(channels_last(each).shape) for each in outputs], flops.get_total_flops() // 2


def _variables(network: Network, request: ProgramRequest) -> Iterator[VariableRow]:
    trained = {f"{MODEL}{name}" for name, each in network.module.named_parameters() if each.requires_grad}
    for name, array in weights_of(network.module).items():
        trainable = name in trained and not freezes(name, request.pretrained, request.freeze)
        yield VariableRow(name, array.shape, array.size, trainable)


def _row(operation: Operation, recorder: Recorder, count: int) -> OperationRow:
    inputs = tuple(f"{MODEL}{recorder.operations[place].name}" for place in operation.inputs)
    return OperationRow(f"{MODEL}{operation.name}", operation.kind, _open(operation.shape, count), inputs)


def _layer(layer: LayerRun, recorder: Recorder, count: int, counts: Mapping[str, int]) -> LayerRow:
    shape = _open(recorder.operations[layer.place].shape, count)
    parameters = sum(counts.get(name, 0) for name in layer.weights)
    return LayerRow(layer.name, shape, parameters, layer.operations)


def _open(shape: Sequence[int], count: int) -> Shape:
    """Return a shape with None for the samples of the batch."""
    return tuple(None if not axis and side == count else side for axis, side in enumerate(shape))


def _attention(query: Any, key: Any, value: Any, *_others: Any, **_options: Any) -> int:
    return sdpa_flop_count(query, key, value)


def _recurrent(x: Any, weight: Any, recurrent: Any, *_others: Any, **_options: Any) -> int:
    return 2 * x[0] * x[1] * (math.prod(weight) + math.prod(recurrent))


_FLOPS: Final[dict[Any, Any]] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten.mkldnn_rnn_layer: _recurrent,
}
"""What PyTorch's own counter leaves out; twice the multiply-adds, from the shapes of the arguments."""
