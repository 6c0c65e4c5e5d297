"""Owns running a user's network eagerly on one real batch: values can be printed, and an error stops at its line."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.repairs import repair_slim
from ziggurat.backends.tensorflow.network_file import load_network, users_errors
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import StateError

__all__ = ["DebugResult", "LayerCall", "debug_network"]

_LAYERS: Final = [
    "avg_pool2d",
    "batch_norm",
    "bias_add",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "dropout",
    "flatten",
    "fully_connected",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "max_pool2d",
    "separable_conv2d",
]


@dataclass(frozen=True)
class LayerCall:
    """One layer as it ran.

    Args:
        layer: function of slim.
        scope: name that the user gave it.
        shape: of its output.
        mean: of its output.
        deviation: of its output.
    """

    layer: str
    scope: str
    shape: tuple[int, ...]
    mean: float
    deviation: float


@dataclass(frozen=True)
class DebugResult:
    """What one eager run gave.

    Args:
        layers: slim's layers in the order of their calls.
        variables: name → shape.
        output_shapes: shape of each output.
        loss: its value.
    """

    layers: list[LayerCall]
    variables: dict[str, tuple[int, ...]]
    output_shapes: list[tuple[int, ...]]
    loss: float


def debug_network(
    text: str, path: str, *, batch: Sequence[np.ndarray], input_shape: Sequence[int], classes: int | None
) -> DebugResult:
    """Run ``inference`` and ``loss`` of a network file once, eagerly, in training mode.

    Args:
        text: the Python source.
        path: its name, for errors.
        batch: ``[x, y]`` or ``[x]``, as training gets it.
        input_shape: (H, W, C).
        classes: number of classes, or None.

    Raises:
        StateError: where TensorFlow runs in graph mode in this process already.
        NetworkCodeError: where the user's code fails; names file and line.
    """
    if not tf.executing_eagerly():
        raise StateError(
            "A network is debugged in a process in which TensorFlow runs eagerly.",
            received="graph mode",
            advice="Use `ziggurat debug NETWORK.py`, which starts such a process.",
        )
    calls: list[LayerCall] = []
    _name_eager_tensors()
    network = load_network(text, path, slim_names=_recording(calls))
    store = importlib.import_module("tensorflow.python.ops.variable_scope").EagerVariableStore()
    with store.as_default(), tf.variable_scope("model"), users_errors(path):
        x = tf.constant(np.asarray(batch[0], np.float32))
        y = None if len(batch) < 2 else tf.constant(batch[1])
        tower: Any = network(x, y, list(input_shape), classes, is_training=True, is_inference=False)
        output = tower.inference
        loss = tower.loss
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    losses = [part["loss"] for part in loss] if isinstance(loss, list | tuple) else [loss]
    return DebugResult(
        layers=calls,
        variables={variable.name.removesuffix(":0"): tuple(variable.shape.as_list()) for variable in store.variables()},
        output_shapes=[tuple(each.shape.as_list()) for each in outputs],
        loss=float(sum(float(each) for each in losses)),
    )


def _recording(calls: list[LayerCall]) -> Mapping[str, Callable[..., Any]]:
    """Return slim's layers, each of which notes its output when it is called."""
    slim: Any = repair_slim()
    return {name: _recorded(name, getattr(slim, name), calls) for name in _LAYERS if hasattr(slim, name)}


def _recorded(name: str, layer: Callable[..., Any], calls: list[LayerCall]) -> Callable[..., Any]:
    @functools.wraps(layer)  # keeps the key that slim's arg_scope knows the layer by
    def recorded(*arguments: Any, **options: Any) -> Any:
        output = layer(*arguments, **options)
        values = output.numpy()
        calls.append(
            LayerCall(name, str(options.get("scope") or ""), values.shape, float(values.mean()), float(values.std()))
        )
        return output

    return recorded


def _name_eager_tensors() -> None:
    """Give eager tensors an ``op`` with a name: the guides' networks name their summaries by ``accuracy.op.name``."""

    class Operation:
        name = "value"

    kind = type(tf.constant(0.0))
    kind.op = property(lambda tensor: Operation())
