"""Eager run of a user's network on one real batch: values can be printed, and an error stops at its line."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.namespace.recording import Listener, recorded_module, silent_summaries
from ziggurat.backends.tensorflow.namespace.tensorflow import user_slim, user_tensorflow
from ziggurat.backends.tensorflow.network_file import load_network, users_errors
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import StateError

__all__ = ["DebugResult", "LayerCall", "debug_network"]


@dataclass(frozen=True)
class LayerCall:
    """One layer as it ran; one with several outputs is there once for each.

    Args:
        layer: the function as the user's file calls it, such as ``slim.conv2d`` or ``tf.nn.relu``.
        scope: name that the user gave it.
        shape: of its output.
        mean: of its output.
        deviation: of its output.
        line: of the user's file; None where something else called it.
    """

    layer: str
    scope: str
    shape: tuple[int, ...]
    mean: float
    deviation: float
    line: int | None


@dataclass(frozen=True)
class DebugResult:
    """What one eager run gave.

    Args:
        layers: calls of functions of ``tf`` and ``slim`` that make numbers of tensors, in their order.
        variables: name → shape.
        output_shapes: shape of each output.
        loss: its value.
        notes: sentences on what was left out.
    """

    layers: list[LayerCall]
    variables: dict[str, tuple[int, ...]]
    output_shapes: list[tuple[int, ...]]
    loss: float
    notes: list[str]


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
    calls = _Calls(path)
    _name_eager_tensors()
    network = load_network(text, path, tensorflow=calls.module())
    store = importlib.import_module("tensorflow.python.ops.variable_scope").EagerVariableStore()
    with store.as_default(), tf.variable_scope("model"), users_errors(path), calls.of_layer_objects():
        x = tf.constant(np.asarray(batch[0], np.float32))
        y = None if len(batch) < 2 else tf.constant(batch[1])
        tower: Any = network(x, y, list(input_shape), classes, is_training=True, is_inference=False)
        output = tower.inference
        loss = tower.loss
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    losses = [part["loss"] for part in loss] if isinstance(loss, list | tuple) else [loss]
    return DebugResult(
        layers=calls.layers,
        variables={variable.name.removesuffix(":0"): tuple(variable.shape.as_list()) for variable in store.variables()},
        output_shapes=[tuple(each.shape.as_list()) for each in outputs],
        loss=float(sum(float(each) for each in losses)),
        notes=calls.notes(),
    )


class _Calls:
    """Collects what the user's file calls.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.layers: list[LayerCall] = []
        self._summaries: dict[str, int | None] = {}
        self._listener = Listener(path, self._add)

    def module(self) -> ModuleType:
        """Return ``tf`` for the file."""
        names = silent_summaries(self._listener, self._leave_out)
        names["tf.contrib.slim"] = recorded_module(user_slim(), "slim", self._listener, {})
        return recorded_module(user_tensorflow(), "tf", self._listener, names)

    @contextmanager
    def of_layer_objects(self) -> Iterator[None]:
        """Hear of calls of layer objects, too, such as ``tf.layers.Dense(10)(net)``, until the end of the block."""
        kind: Any = importlib.import_module("tf_keras").layers.Layer
        plain, listener = kind.__call__, self._listener

        def heard(layer: Any, *arguments: Any, **options: Any) -> Any:
            function = plain.__get__(layer)
            return listener.call(type(layer).__name__, function, arguments, options, scope=layer.name)

        kind.__call__ = heard
        try:
            yield
        finally:
            kind.__call__ = plain

    def notes(self) -> list[str]:
        """Return what the user should know of the run."""
        if not self._summaries:
            return []
        made = [name if line is None else f"{name} (line {line})" for name, line in self._summaries.items()]
        return [f"Summaries are made in training only; left out here: {', '.join(made)}."]

    def _leave_out(self, name: str, line: int | None) -> None:
        self._summaries.setdefault(name, line)

    def _add(self, name: str, scope: str, line: int | None, result: Any) -> None:
        for tensor in tf.nest.flatten(result):
            if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating:
                values = tensor.numpy().astype(np.float64)
                mean, deviation = (float(values.mean()), float(values.std())) if values.size else (0.0, 0.0)
                self.layers.append(LayerCall(name, scope, values.shape, mean, deviation, line))


def _name_eager_tensors() -> None:
    """Give eager tensors an ``op`` with a name: the guides' networks name their summaries by ``accuracy.op.name``."""

    class Operation:
        name = "value"

    kind = type(tf.constant(0.0))
    kind.op = property(lambda tensor: Operation())
