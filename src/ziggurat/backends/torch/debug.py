"""Debug command: a network run once on one batch, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch.network import MODEL, Network, make_network
from ziggurat.backends.torch.recording import LayerRun, Recorder
from ziggurat.backends.torch.state import weights_of
from ziggurat.engine.backend import ProgramRequest

__all__ = ["DebugResult", "LayerCall", "debug_network"]

_MOST_NAMED: Final = 10


@dataclass(frozen=True)
class LayerCall:
    """One layer as it ran.

    Args:
        layer: class of the module, such as ``Conv2d``, or name of the function, such as ``relu``.
        scope: name of the module; for a function that of the module it runs in, empty for the network itself.
        shape: of its output.
        mean: of its output.
        deviation: of its output.
        line: of the user's file.
    """

    layer: str
    scope: str
    shape: tuple[int, ...]
    mean: float
    deviation: float
    line: int | None


@dataclass(frozen=True)
class DebugResult:
    """What one run gave.

    Args:
        layers: as they ran, in their order.
        variables: name → shape.
        output_shapes: shape of each output.
        loss: its value.
        notes: sentences on what is worth a look.
    """

    layers: list[LayerCall]
    variables: dict[str, tuple[int, ...]]
    output_shapes: list[tuple[int, ...]]
    loss: float
    notes: list[str]


def debug_network(request: ProgramRequest, batch: Sequence[np.ndarray]) -> Mapping[str, Any]:
    """Run a network once on one batch, in training mode, on the CPU; nothing is trained.

    Args:
        request: the network.
        batch: ``[x, y]`` or ``[x]``, as training gets it.

    Raises:
        NetworkCodeError: where the user's code fails; names file and line.
    """
    network = make_network(request)
    network.module.train()
    layers: list[LayerCall] = []

    def seen(layer: LayerRun, tensor: torch.Tensor) -> None:
        if layer.line is not None and tensor.is_floating_point():
            layers.append(_call(layer, tensor))

    x, y = network.samples(batch[0]), network.labels(batch[1] if len(batch) > 1 else None)
    with Recorder(network.module, network.path, seen=seen) as recorder:
        results = network.results(x, y, is_training=True)
    found = DebugResult(
        layers=layers,
        variables={name: array.shape for name, array in weights_of(network.module).items()},
        output_shapes=[tuple(each.shape) for each in results.outputs],
        loss=float(sum(float(each.value.detach()) for each in results.losses)),
        notes=_notes(network, recorder),
    )
    return asdict(found)


def _call(layer: LayerRun, tensor: torch.Tensor) -> LayerCall:
    values = tensor.detach().double()
    mean, deviation = (float(values.mean()), float(values.std(correction=0))) if values.numel() else (0.0, 0.0)
    return LayerCall(layer.kind, layer.scope, tuple(tensor.shape), mean, deviation, layer.line)


def _notes(network: Network, recorder: Recorder) -> list[str]:
    read = {name for operation in recorder.operations for name in operation.weights}
    unused = [f"{MODEL}{name}" for name, _ in network.module.named_parameters() if name not in read]
    if not unused:
        return []
    more = f" and {len(unused) - _MOST_NAMED} more" if len(unused) > _MOST_NAMED else ""
    return [f"Weights that nothing read: {', '.join(unused[:_MOST_NAMED])}{more}."]
