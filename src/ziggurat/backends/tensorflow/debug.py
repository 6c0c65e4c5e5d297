"""Debug command: a network run eagerly, layer by layer; call ``choose_eager`` first."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import part_of
from ziggurat.backends.tensorflow.namespace.tensorflow import user_slim, user_tensorflow
from ziggurat.backends.tensorflow.network_file import load_network, users_errors
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import TowerInput, make_tower
from ziggurat.engine.backend import ProgramRequest, single_arrays
from ziggurat.errors import StateError
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.zoo import network_path

__all__ = ["TensorFlowDebugging", "debug_network"]

_SUMMARIES: Final = ("audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text")
_OLD_SUMMARIES: Final = (
    *("audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary", "scalar_summary"),
)
# These call what they are given, layer by layer: the layers are listed, not the whole.
_TRANSPARENT: Final = ("slim.repeat", "slim.stack", "layers.repeat", "layers.stack")
# They make no layer of a tensor, but show, check or write it.
_SILENT: Final = ("tf.Print", "tf.debugging.", "tf.summary.", "tf.test.", "tf.train.")

Heard = Callable[[str, str, int | None, Any], None]


class Listener:
    """Hears of each call that the user's file makes of a recorded function with a tensor.

    What a layer calls inside itself is not heard, only what stands in the file.

    Args:
        path: the user's file.
        heard: called with the function's name as the user sees it, the scope, the line, and what it returned.
    """

    def __init__(self, path: str, heard: Heard) -> None:
        self._path = path
        self._heard = heard
        self._depth = 0

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        scope: str = "",
    ) -> Any:
        """Call a function for the user, and tell of it.

        Args:
            name: as the user sees it.
            function: what to call.
            arguments: by place.
            options: by name.
            scope: name that the user gave it, where it is not among the options.
        """
        caller = sys._getframe(2)
        is_users = caller.f_code.co_filename == self._path
        if name.endswith(_TRANSPARENT) or not (is_users or self._depth == 0) or not _has_tensor((arguments, options)):
            return function(*arguments, **options)
        self._depth += 1
        try:
            result = function(*arguments, **options)
        finally:
            self._depth -= 1
        self._heard(name, scope or str(options.get("scope") or options.get("name") or ""), self.line(caller), result)
        return result

    def line(self, frame: FrameType | None) -> int | None:
        """Return the line of the user's file that a frame belongs to, or was called from."""
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        return None if frame is None else frame.f_lineno


def recorded_module(module: ModuleType, name: str, listener: Listener, names: Mapping[str, Any]) -> ModuleType:
    """Return a module like another one, whose functions, and those of the modules in it, tell a listener of calls.

    Args:
        module: the module.
        name: as the user writes it, such as ``tf``.
        listener: hears of the calls.
        names: dotted name (``tf.summary.image``) → what stands there instead.
    """
    return _Recorded(module, name, listener, dict(names))


def silent_summaries(listener: Listener, left_out: Callable[[str, int | None], None]) -> dict[str, Any]:
    """Return the summary functions of ``tf`` that do nothing but tell, for ``names`` of ``recorded_module``.

    Args:
        listener: knows the user's lines.
        left_out: called with the function's name and the line.
    """

    def silent(name: str) -> Callable[..., Any]:
        def summary(*_arguments: Any, **_options: Any) -> Any:
            left_out(name, listener.line(sys._getframe(1)))
            return tf.constant(b"")

        return summary

    names = [f"tf.summary.{name}" for name in _SUMMARIES] + [f"tf.{name}" for name in _OLD_SUMMARIES]
    return {name: silent(name) for name in names}


class _Recorded(ModuleType):
    """A module whose attributes are recorded when they are first asked for."""

    def __init__(self, module: ModuleType, name: str, listener: Listener, names: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(_module=module, _listener=listener, _names=names)
        self.__path__ = []  # so that `import a.b` finds it to be a package

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        whole = f"{self.__name__}.{name}"
        found = own["_names"].get(whole)
        own[name] = value = self._recorded(whole, part_of(own["_module"], name)) if found is None else found
        return value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])

    def _recorded(self, name: str, value: Any) -> Any:
        listener = self.__dict__["_listener"]
        if isinstance(value, ModuleType):
            return _Recorded(value, name, listener, self.__dict__["_names"])
        if not isinstance(value, FunctionType) or name.startswith(_SILENT):
            return value

        @functools.wraps(value)  # keeps the key that slim's arg_scope knows the layer by
        def recorded(*arguments: Any, **options: Any) -> Any:
            return listener.call(name, value, arguments, options)

        return recorded


def _has_tensor(values: Any) -> bool:
    return any(isinstance(each, tf.Tensor | tf.Variable) for each in _leaves(values))


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list | tuple):
        for each in values:
            yield from _leaves(each)
    elif isinstance(values, dict):
        for each in values.values():
            yield from _leaves(each)
    else:
        yield values


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
    text: str, path: str, *, batch: Sequence[np.ndarray], x: ArraySpec, y: ArraySpec | None
) -> DebugResult:
    """Run ``inference`` and ``loss`` of a network file once, eagerly, in training mode.

    Args:
        text: the Python source.
        path: its name, for errors.
        batch: ``[x, y]`` or ``[x]``, as training gets it.
        x: what the network gets of one sample.
        y: what it learns to give for one; None where it learns from its input alone.

    Raises:
        StateError: where TensorFlow runs in graph mode in this process already.
        NetworkCodeError: where the user's code fails; names file and line.
    """
    if not tf.executing_eagerly():
        raise StateError(
            "TensorFlow is in graph mode here, and a network is debugged in eager mode.",
            advice="Use `ziggurat debug NETWORK.py`, which starts such a process.",
        )
    calls = _Calls(path)
    _name_eager_tensors()
    network = load_network(text, path, tensorflow=calls.module())
    store = importlib.import_module("tensorflow.python.ops.variable_scope").EagerVariableStore()
    with store.as_default(), tf.variable_scope("model"), users_errors(path), calls.of_layer_objects():
        samples = tf.constant(np.asarray(batch[0], x.dtype))
        labels = None if y is None or len(batch) < 2 else tf.constant(_labels(batch[1], y))
        shared = TowerInput(network, path, x, y)
        tower = make_tower(shared, samples, labels, is_training=True, is_inference=False)
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


def _labels(labels: np.ndarray, target: ArraySpec) -> np.ndarray:
    """Return the labels of a batch as a graph has them; class numbers are int64."""
    return np.asarray(labels, np.int64 if target.is_class_number else target.dtype)


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


class TensorFlowDebugging:
    """Runs networks eagerly, in a process in which nothing else uses TensorFlow."""

    def debug(self, request: ProgramRequest, batch: Sequence[np.ndarray]) -> Mapping[str, Any]:
        """Run ``inference`` and ``loss`` once; an error stops at the user's line."""
        text, path = request.network_text, request.network
        if text is None:
            file: Path = network_path(request.network, "tensorflow")
            text, path = file.read_text(encoding="utf-8"), str(file)
        x, y = single_arrays(request)
        return asdict(debug_network(text, path, batch=batch, x=x, y=y))
