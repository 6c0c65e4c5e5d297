"""TensorFlow program: a session over the job's graph, behind the nine methods that the loop calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.describe import light_graph
from ziggurat.backends.tensorflow.failures import explained
from ziggurat.backends.tensorflow.graph import JobGraph
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.summaries import with_short_tags
from ziggurat.errors import CheckpointError, ConfigurationError, UnknownNameError

__all__ = ["TensorFlowProgram"]


class TensorFlowProgram:
    """Runs a job's graph. Calls are prepared once for each set of names, so that a step pays for no look-up.

    Args:
        graph: what ``build_graph`` gave; it is finalized here, and its variables initialized.
        batch_parts: parts that a batch is trained in (gradient accumulation).
        config: a ``tf.ConfigProto``; None for the default.

    Raises:
        TrainingError: where the variables do not fit in memory.
    """

    def __init__(self, graph: JobGraph, *, batch_parts: int = 1, config: Any = None) -> None:
        self.graph = graph
        self._parts = batch_parts
        self._is_averaged = False
        with graph.graph.as_default():
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._placeholders, self._load = _loading(self._variables)
            initializer = tf.global_variables_initializer()
        graph.graph.finalize()
        self.session = tf.Session(graph=graph.graph, config=config)
        try:
            self.session.run(initializer)
            self.start_averages()
        except tf.errors.OpError as error:
            self.session.close()
            raise explained(error, graph.path, doing="start") from error
        self._values = {name: float(value) for name, value in self.session.run(graph.hyperparameters).items()}
        self._calls: dict[tuple[str, tuple[str, ...]], Callable[..., Any]] = {}
        self._feeds = [graph.x] if graph.y is None else [graph.x, graph.y]

    # ---- the contract

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: those of training steps; evaluation has most of them."""
        return tuple(self.graph.train_values)

    def declare(self, names: Sequence[str]) -> None:
        """Check the names; the graph holds all of them already."""
        for name in names:
            self._tensor(self.graph.train_values, name)

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch ``[x, y]``: one step of the optimizer, whatever the number of parts."""
        names = tuple(names)
        self._use_averages(False)
        try:
            if self._parts == 1:
                return _named(names, self._call("train", names)(*self._fed(batch)))
            parts = [np.array_split(array, self._parts) for array in self._fed(batch)]
            *first, last = zip(*parts, strict=True)
            add = self._call("accumulate", ())
            for part in first:
                add(*part)
            return _named(names, self._call("train", names)(*last))
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path) from error

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Run the validation tower on one batch ``[x, y]``, with the averaged weights where there are any."""
        names = tuple(names)
        self._use_averages(True)
        try:
            return _named(names, self._call("evaluate", names)(*self._fed(batch)))
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path) from error

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate``, and ``momentum`` where the optimizer has it."""
        return dict(self._values)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on."""
        if name not in self._values:
            raise UnknownNameError("hyperparameter", name, self._values)
        placeholder, assign = self.graph.assignments[name]
        self.session.run(assign, {placeholder: value})
        self._values[name] = float(value)

    def state(self) -> dict[str, np.ndarray]:
        """Return every variable by name: weights, slots of the optimizer, averages, hyperparameters, global step."""
        self._use_averages(False)
        values = self.session.run(self._variables)
        return {name: np.array(value) for name, value in values.items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        problems = [f"{name} is missing" for name in self._variables if name not in state]
        problems += [f"{name} is unexpected" for name in state if name not in self._variables]
        problems += [
            f"{name} has shape {state[name].shape} instead of {tuple(variable.shape.as_list())}"
            for name, variable in self._variables.items()
            if name in state and state[name].shape != tuple(variable.shape.as_list())
        ]
        if problems:
            raise CheckpointError(
                "A checkpoint is loaded by the network that it was saved from.",
                received="; ".join(problems[:10]),
                advice="Give the network the layers it had, or start from the checkpoint as a pretrained model.",
                details={"problems": problems},
            )
        self.assign({name: state[name] for name in self._variables})

    def close(self) -> None:
        """Close the session; closing twice does nothing."""
        self.session.close()

    # ---- beyond the contract

    def summary_names(self) -> Sequence[str]:
        """Return the single numbers that every job logs: the cost, its parts, and the user's scalar summaries."""
        scalars = list(self.graph.training[0].scalars)
        return [name for name in ("cost", "regularization", "error", *scalars) if name in self.graph.train_values]

    def evaluation_names(self) -> Sequence[str]:
        """Return the values that ``evaluate`` can give: not those that the user makes only where ``is_training``."""
        return tuple(self.graph.validation_values)

    def summarise(self, batch: Any) -> bytes:
        """Return the user's images, histograms and other summaries of one batch ``[x, y]``, as a ``Summary`` message.

        They are those of the validation tower, and others as far as computing them changes nothing. A batch that is
        trained in parts is represented by its first part. Empty where the network has no summaries.
        """
        if self.graph.summary is None:
            return b""
        part = [np.array_split(array, self._parts)[0] for array in self._fed(batch)]
        self._use_averages(True)
        try:
            (summary,) = self._call("summarise", ())(*part)
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path) from error
        return with_short_tags(summary)

    def graph_bytes(self) -> bytes:
        """Return the graph as a serialized ``GraphDef``, with the shapes of its tensors and without large constants."""
        return light_graph(self.graph.graph).SerializeToString()

    def assign(self, values: Mapping[str, np.ndarray]) -> None:
        """Give some variables other values, in one call.

        Args:
            values: variable name → array of the variable's shape.
        """
        self._use_averages(False)
        self.session.run(
            [self._load[name] for name in values], {self._placeholders[name]: value for name, value in values.items()}
        )
        for name, variable in self.graph.hyperparameters.items():
            if variable.op.name in values:
                self._values[name] = float(values[variable.op.name])

    def predict(self, x: np.ndarray) -> list[np.ndarray]:
        """Return the outputs of the inference tower for ``x: (N, H, W, C) float32``."""
        self._use_averages(True)
        return self.session.run(self.graph.inference.outputs, {self.graph.x: x})

    def start_averages(self) -> None:
        """Begin to average at the weights as they are now."""
        if self.graph.averages is not None:
            self._use_averages(False)
            self.session.run(self.graph.averages.start)

    # ---- inside

    def _use_averages(self, wanted: bool) -> None:
        """Let the network compute with the averaged weights, or with those that are trained.

        They are exchanged when the need changes, so twice a validation, not twice a batch.
        """
        if self.graph.averages is not None and wanted != self._is_averaged:
            self.session.run(self.graph.averages.exchange)
            self._is_averaged = wanted

    def _fed(self, batch: Any) -> list[np.ndarray]:
        fed = [
            np.asarray(part, dtype=tensor.dtype.as_numpy_dtype)
            for part, tensor in zip(batch, self._feeds, strict=False)
        ]
        expected = tuple(self.graph.x.shape.as_list()[1:])
        if fed[0].shape[1:] != expected:
            raise ConfigurationError(
                f"A sample of this network has shape {expected}.",
                received=str(fed[0].shape[1:]),
                advice="Give it data of the size it was made for, or set the crop.",
            )
        return fed

    def _call(self, kind: str, names: tuple[str, ...]) -> Callable[..., Any]:
        prepared = self._calls.get((kind, names))
        if prepared is None:
            values = self.graph.validation_values if kind == "evaluate" else self.graph.train_values
            fetches = [self._tensor(values, name) for name in names] if kind != "summarise" else [self.graph.summary]
            operation = {"train": self.graph.train_op, "accumulate": self.graph.accumulate_op}.get(kind)
            with self.graph.graph.as_default():
                prepared = self.session.make_callable(
                    [*fetches, operation] if operation is not None else fetches, feed_list=self._feeds
                )
            self._calls[(kind, names)] = prepared
        return prepared

    def _tensor(self, values: Mapping[str, Any], name: str) -> Any:
        if name not in values:
            raise UnknownNameError("value of this program", name, values)
        return values[name]


def _named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, itertools.islice(values, len(names)), strict=True)) if names else {}


def _loading(variables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return name → placeholder and name → operation that gives the variable the placeholder's value."""
    placeholders, operations = {}, {}
    with tf.name_scope("ziggurat/load/"), tf.device("/cpu:0"):
        for name, variable in variables.items():
            placeholders[name] = tf.placeholder(variable.dtype.base_dtype, variable.shape)
            operations[name] = variable.assign(placeholders[name], read_value=False)
    return placeholders, operations
