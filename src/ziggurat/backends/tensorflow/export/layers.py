"""Output tensor of each layer: the last one of its scope that the outputs of a tower depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.ancestry import names_behind

__all__ = ["layers_behind"]


def layers_behind(outputs: Sequence[Any], scope: str) -> dict[str, Any]:
    """Return layer → its output, in the order of the graph.

    Args:
        outputs: tensors of a tower.
        scope: of the tower's operations; the first name behind it is that of a layer. An operation of the network
            without a scope of its own is a layer by itself.
    """
    behind = names_behind(outputs)
    layers: dict[str, Any] = {}
    for operation in outputs[0].graph.get_operations():
        if operation.name in behind and operation.name.startswith(scope) and _is_batch(operation):
            layers[operation.name.removeprefix(scope).split("/")[0]] = operation.outputs[0]
    return layers


def _is_batch(operation: Any) -> bool:
    """Return whether an operation gives floating-point numbers for each sample: its first axis is open."""
    if not operation.outputs or operation.type == "Placeholder":
        return False
    tensor = operation.outputs[0]
    if not tensor.dtype.is_floating or (tensor.shape.rank or 0) < 2:
        return False
    return tensor.shape.as_list()[0] is None
