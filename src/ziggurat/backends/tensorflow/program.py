"""TensorFlow program: a session over the job's graph, behind the methods that the loop calls.

The graph is open until ``declare``, so that callbacks can add to it: then it is final, and the session is opened. What
needs a session before that opens it early.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.arithmetic import tensorflow_arithmetic
from ziggurat.backends.tensorflow.calls import (
    Placeholder,
    StepRecorder,
    ThreadChoice,
    explained,
    is_number,
    prepared_call,
)
from ziggurat.backends.tensorflow.describe import light_graph
from ziggurat.backends.tensorflow.graph import WEIGHTS, JobGraph
from ziggurat.backends.tensorflow.linear_head import LinearHeadProgram
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.backends.tensorflow.towers import BuiltTower, Loss, inference_feeds, with_short_tags
from ziggurat.backends.tensorflow.variables import check_state, loading
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed, QueueFeed
from ziggurat.engine.fine_tuning import BACKBONE_RATE, FineTuningRequest
from ziggurat.engine.program import NonFiniteStep
from ziggurat.errors import ConfigurationError, StateError, UnknownNameError
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

__all__ = ["TensorFlowProgram"]

_WHOLE: Final = "train"
_HEAD: Final = "train the head"
_ACCUMULATION: Final = " in part"
"""Behind the kind of a step that adds gradients of a part of a batch."""


class TensorFlowProgram(LinearHeadProgram):
    """Runs a job's graph. Calls are prepared once for each set of names, so that a step pays for no look-up.

    Args:
        graph: what ``build_graph`` gave.
        batch_parts: parts that a batch is trained in (gradient accumulation).
        config: a ``tf.ConfigProto``; None for the default.
        prefetch: batches that a thread makes ahead; 0 for none.
        fine_tuning: names the head of the network; None for its last layer.
    """

    def __init__(
        self,
        graph: JobGraph,
        *,
        batch_parts: int = 1,
        config: Any = None,
        prefetch: int = 0,
        fine_tuning: FineTuningRequest | None = None,
    ) -> None:
        self.graph = graph
        super().__init__(graph.path, fine_tuning)
        self._prefetch, self._parts, self._config = prefetch, batch_parts, config
        self._session: Any = None
        self._is_averaged = False
        self._variables: dict[str, Any] = {}
        self._load: dict[str, tuple[Any, Any]] = {}
        self._first_values: dict[str, np.ndarray] = {}
        self._recorder: StepRecorder | None = None
        self._recordings: dict[str, tuple[list[Any], list[Any]]] = {}
        self._training = self._plain_steps()
        self._threads = _thread_choice(config, len(graph.training))
        self._values = _first_values(graph)
        self._calls: dict[tuple[str, tuple[str, ...]], Callable[..., Any]] = {}
        self._parts_of_cost = _parts_of_cost(graph.validation.losses)
        self._feeds, self._training_feeds = _placeholders(graph)

    @property
    def _inference(self) -> BuiltTower:
        return self.graph.inference

    @property
    def session(self) -> Any:
        """The session. Where there is none yet, the graph is final from now on, and its variables are initialized.

        Raises:
            TrainingError: where the variables do not fit in memory.
        """
        self._open()
        return self._session

    # ---- the contract

    def arithmetic(self) -> dict[str, str | int | bool]:
        """Return what decides the last bits: TensorFlow, its threads, devices and switches."""
        return tensorflow_arithmetic(self._config, towers=len(self.graph.training))

    def names(self) -> Sequence[str]:
        """Return the values that can be fetched: those of training steps; evaluation has most of them."""
        return tuple(self.graph.train_values)

    def has_rival_losses(self) -> bool:
        """Return whether the network has several losses, each with variables of its own."""
        return sum(loss.variables is not None for loss in self.graph.validation.losses) > 1

    def declare(self, names: Sequence[str]) -> None:
        """Check the names, finalize the graph and open the session.

        Raises:
            UnknownNameError: where there is no such value.
            TrainingError: where the variables do not fit in memory.
        """
        for name in names:
            self._tensor(self.graph.train_values, name)
        self._open()

    def connect(self, batches: BatchCycle) -> Feed:
        """Make each batch when its step needs it, or some of them ahead in a thread."""
        return QueueFeed(batches, self._prefetch) if self._prefetch else DirectFeed(batches)

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch ``[x, y]``: one step of the optimizer, whatever the number of parts.

        Where labels are mixed, it is ``[x, y, second_y, share]``.
        """
        names = tuple(names)
        if self._is_averaged:
            self._use_averages(False)
        try:
            if self._parts == 1:
                return self._trained(names, self._fed(batch, self._training_feeds))
            parts = [np.array_split(array, self._parts) for array in self._fed(batch, self._training_feeds)]
            *first, last = zip(*parts, strict=True)
            add = self._call(f"{self._kind}{_ACCUMULATION}", ())
            for part in first:
                add(*part)
            return self._trained(names, last)
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path, self.graph.graph) from error

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Run the validation tower on one batch ``[x, y]``, with the averaged weights where there are any."""
        names = tuple(names)
        self._use_averages(True)
        try:
            fed = self._fed(batch, self._feeds)
            if not self._parts_of_cost or "cost" not in names:
                return _named(names, self._call("evaluate", names)(*fed))
            values = self._call("evaluate", (*names, *self._parts_of_cost))(*fed)
            found = _named(names, values[: len(names)])
            return found | {
                "cost": _weighted_cost(found["cost"], values[len(names) :], self.graph.validation.losses, len(fed[0]))
            }
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path, self.graph.graph) from error

    def hyperparameters(self) -> Mapping[str, float]:
        """Return ``learning_rate``, ``momentum`` where the optimizer has it, ``backbone_rate`` where it fine-tunes."""
        return dict(self._values)

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on."""
        if name not in self._values:
            raise UnknownNameError("hyperparameter", name, self._values)
        key = ("set", (name,))
        assign = self._calls.get(key)
        if assign is None:
            placeholder, operation = self.graph.assignments[name]
            assign = self._calls[key] = prepared_call(self.session, [placeholder], [], [operation], in_own_thread=True)
        assign(np.float32(value))
        kind = self._kind
        self._values[name] = float(value)
        if self._kind != kind:  # another kind of step, of another length
            self._threads = _thread_choice(self._config, len(self.graph.training))
            self._forget_training_calls()

    def state(self) -> dict[str, np.ndarray]:
        """Return every variable by name: weights, slots of the optimizer, averages, hyperparameters, global step."""
        self._open()
        self._use_averages(False)
        values = self.session.run(self._variables)
        return {name: np.array(value) for name, value in values.items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another network.
        """
        self._open()
        advice = "Give the network the layers it had, or start from the checkpoint as a pretrained model."
        check_state(self._variables, state, advice)
        self.assign({name: state[name] for name in self._variables})

    def close(self) -> None:
        """Close the session; closing twice does nothing."""
        if self._session is not None:
            self._session.close()

    # ---- beyond the contract

    @contextmanager
    def extend_graph(self) -> Iterator[dict[str, Any]]:
        """Make the graph the default one; give name → tensor of a training step, to which values may be added.

        Raises:
            StateError: where the graph is final.
        """
        if self._session is not None:
            raise StateError(
                "`extend_graph` was called when the session was open already, and the graph cannot change any more.",
                advice="Add operations in the `setup_graph` of a callback.",
            )
        with self.graph.graph.as_default():
            values = self.graph.train_values
            yield values
            values |= {name: tf.convert_to_tensor(value) for name, value in values.items()}

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        """Keep values of every step to come in the graph.

        A program whose session is open keeps what it was asked for before, and nothing more.
        """
        values = {name: self._tensor(self.graph.train_values, name) for name in names}
        if self._session is None:
            numbers = {name: value for name, value in values.items() if is_number(value)}
            with self.graph.graph.as_default():
                self._recorder = StepRecorder(numbers, watched, self.graph.train_op) if numbers else None
                self._recordings = self._recorded_steps(self._recorder)
        recorder = self._recorder
        known = () if recorder is None else (*recorder.names,)
        kept = [name for name in names if name in known]
        if recorder is not None:
            kept = [name for name in kept if name not in watched or name in recorder.watched]
        self._training = self._plain_steps()
        if recorder is not None and kept:
            is_checked = any(name in watched for name in kept)
            self._training = {kind: both[is_checked] for kind, both in self._recordings.items()}
        self._forget_training_calls()
        return kept

    def recorded(self) -> Mapping[str, np.ndarray]:
        """Return kept name → values of the steps since the last call, oldest first."""
        if self._recorder is None or self._session is None:
            return {}
        return self._recorder.take()

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
        part = [np.array_split(array, self._parts)[0] for array in self._fed(batch, self._feeds)]
        self._use_averages(True)
        try:
            (summary,) = self._call("summarise", ())(*part)
        except tf.errors.OpError as error:
            raise explained(error, self.graph.path, self.graph.graph) from error
        return with_short_tags(summary)

    def graph_bytes(self) -> bytes:
        """Return the graph as a serialized ``GraphDef``, with the shapes of its tensors and without large constants."""
        return light_graph(self.graph.graph).SerializeToString()

    def assign(self, values: Mapping[str, np.ndarray]) -> None:
        """Give some variables other values, in one call.

        Args:
            values: variable name → array of the variable's shape.
        """
        if self._session is None:
            self._first_values |= values
        else:
            self._use_averages(False)
            self._assign(self._session, values)
        for name, variable in self.graph.hyperparameters.items():
            if variable.op.name in values:
                self._values[name] = float(values[variable.op.name])

    def predict(self, x: np.ndarray, given: Mapping[str, np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the outputs of the inference tower for ``x: (N, …)``, as a batch has it.

        Args:
            x: the samples.
            given: what the network may be given beside them, by name; see ``inference_inputs`` of ``Tower``.
        """
        self._use_averages(True)
        inference = self.graph.inference
        return self.session.run(inference.outputs, inference_feeds(inference, x, given or {}))

    def start_averages(self) -> None:
        """Begin to average at the weights as they are now; a session begins like that when it is opened."""
        if self.graph.averages is not None and self._session is not None:
            self._use_averages(False)
            self._session.run(self.graph.averages.start)

    # ---- inside

    @property
    def _kind(self) -> str:
        """Which steps are taken: those of the whole network, or of its head alone."""
        return _HEAD if self.graph.head is not None and self._values[BACKBONE_RATE] == 0 else _WHOLE

    def _plain_steps(self) -> dict[str, list[Any]]:
        """Return kind → operations of a step that nothing is recorded of."""
        head = self.graph.head
        return {_WHOLE: [self.graph.train_op], **({} if head is None else {_HEAD: [head.train_op]})}

    def _recorded_steps(self, recorder: StepRecorder | None) -> dict[str, tuple[list[Any], list[Any]]]:
        """Return kind → operations of a step that is recorded, without and with a check."""
        if recorder is None:
            return {}
        found = {_WHOLE: (recorder.operations, recorder.checked_operations)}
        head = self.graph.head
        if head is not None:
            found[_HEAD] = recorder.recording({**self.graph.train_values, **head.values}, head.train_op)
        return found

    def _open(self) -> None:
        if self._session is not None:
            return
        graph = self.graph.graph
        with graph.as_default():
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._load = loading(self._variables)
            first = [tf.global_variables_initializer()]
            if tf.get_collection(WEIGHTS):
                first.append(tf.variables_initializer(tf.get_collection(WEIGHTS)))
            if self._recorder is not None:
                first.append(self._recorder.initializer)
        graph.finalize()
        session = tf.Session(graph=graph, config=self._config)
        try:
            session.run(first)
            if self._first_values:
                self._assign(session, self._first_values)
                self._first_values = {}
            if self.graph.averages is not None:
                session.run(self.graph.averages.start)
        except tf.errors.OpError as error:
            session.close()
            raise explained(error, self.graph.path, doing="start") from error
        if self._recorder is not None:
            self._recorder.open(session)
        self._session = session
        # At the latest before the interpreter takes its modules apart: a prepared call of an open session frees itself.
        weakref.finalize(self, session.close)

    def _assign(self, session: Any, values: Mapping[str, np.ndarray]) -> None:
        feeds = {self._load[name][0]: value for name, value in values.items()}
        session.run([self._load[name][1] for name in values], feeds)

    def _trained(self, names: tuple[str, ...], fed: Sequence[np.ndarray]) -> Mapping[str, Any]:
        kind = self._kind
        recorder, call = self._recorder, self._calls.get((kind, names)) or self._call(kind, names)
        trials = self._threads.trials_left
        began = time.perf_counter() if trials else 0.0
        try:
            values = call(*fed)
        except tf.errors.InvalidArgumentError as error:
            name = None if recorder is None else recorder.non_finite(error)
            if name is None:
                raise
            raise NonFiniteStep(name) from error
        if recorder is not None:
            recorder.count_step()
        if trials and self._threads.has_changed(time.perf_counter() - began):
            self._forget_training_calls()
        return _named(names, values) if names else {}

    def _forget_training_calls(self) -> None:
        self._calls = {key: call for key, call in self._calls.items() if not key[0].startswith(_WHOLE)}

    def _use_averages(self, wanted: bool) -> None:
        """Let the network compute with the averaged weights, or with those that are trained.

        They are exchanged when the need changes, so twice a validation, not twice a batch.
        """
        if self.graph.averages is not None and wanted != self._is_averaged:
            self.session.run(self.graph.averages.exchange)
            self._is_averaged = wanted

    def _fed(self, batch: Any, feeds: Sequence[Placeholder]) -> list[np.ndarray]:
        if len(batch) < len(feeds):
            raise ConfigurationError(
                f"The batch has {len(batch)} component(s); this network takes "
                f"{' and '.join(f'{feed.noun}s' for feed in feeds)}.",
                advice="Give it one array for each.",
            )
        # The first look is the whole check of nearly every part; the feed converts, and says what is wrong.
        return [
            part
            if type(part) is np.ndarray and part.dtype is feed.dtype and part.shape[1:] == feed.row_shape and part.ndim
            else feed.array(part)
            for feed, part in zip(feeds, batch, strict=False)
        ]

    def _call(self, kind: str, names: tuple[str, ...]) -> Callable[..., Any]:
        prepared = self._calls.get((kind, names))
        if prepared is None:
            values = self.graph.train_values
            if kind == "evaluate":
                values = self.graph.validation_values | self._parts_of_cost
            head = self.graph.head
            if kind == _HEAD and head is not None:
                values = {**values, **head.values}
            fetches = [self._tensor(values, name) for name in names] if kind != "summarise" else [self.graph.summary]
            trains = kind.startswith(_WHOLE)
            targets = self._targets(kind) if trains else []
            feeds = [feed.tensor for feed in (self._training_feeds if trains else self._feeds)]
            in_own_thread = self._threads.in_own_thread and bool(targets)
            prepared = prepared_call(self.session, feeds, fetches, targets, in_own_thread=in_own_thread)
            self._calls[(kind, names)] = prepared
        return prepared

    def _targets(self, kind: str) -> list[Any]:
        """Return the operations of a kind of step, or of a part of one."""
        whole = kind.removesuffix(_ACCUMULATION)
        if whole == kind:
            return self._training[kind]
        head = self.graph.head
        return [self.graph.accumulate_op if whole == _WHOLE or head is None else head.accumulate_op]

    def _tensor(self, values: Mapping[str, Any], name: str) -> Any:
        if name not in values:
            raise UnknownNameError("value of this program", name, values)
        return values[name]


def _weighted_cost(cost: Any, parts: Sequence[Any], losses: Sequence[Loss], rows: int) -> WeightedMean:
    """Return the cost of a batch with its sums and weights.

    Args:
        cost: of the batch.
        parts: values of the tensors of ``_parts_of_cost``.
        losses: The losses that add up to the cost.
        rows: of the batch.
    """
    given, sums = iter([float(each) for each in parts]), []
    for loss in losses:
        value = next(given)
        if loss.weight is None:
            sums.append(WeightedSum(value * rows, rows, rows))
        else:
            total, divisor = next(given), next(given)
            sums.append(WeightedSum(value * divisor, total, divisor, loss.weight.at_least))
    return WeightedMean(float(cost), sums)


def _first_values(graph: JobGraph) -> dict[str, float]:
    """Return hyperparameter → its initial value."""
    return {name: float(tf2.get_static_value(each.initial_value)) for name, each in graph.hyperparameters.items()}


def _parts_of_cost(losses: Sequence[Loss]) -> dict[str, Any]:
    """Return name → tensor of the values and weights of some losses; empty if all are means over samples."""
    if all(loss.weight is None for loss in losses):
        return {}
    tensors: list[Any] = []
    for loss in losses:
        tensors += [loss.value] if loss.weight is None else [loss.value, loss.weight.total, loss.weight.divisor]
    return {f"part of cost {number}": tensor for number, tensor in enumerate(tensors)}


def _named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True)) if names else {}


def _placeholders(graph: JobGraph) -> tuple[list[Placeholder], list[Placeholder]]:
    """Return what evaluation is fed with, and what a step of training is."""
    fed = (("sample", graph.x), ("label", graph.y))
    feeds = [Placeholder.of(noun, tensor) for noun, tensor in fed if tensor is not None]
    if graph.mixed is None:
        return feeds, feeds
    beside = (("second label", graph.mixed.y), ("share", graph.mixed.share))
    return feeds, [*feeds, *(Placeholder.of(noun, tensor) for noun, tensor in beside)]


def _thread_choice(config: Any, towers: int) -> ThreadChoice:
    # Who sets the number of threads, or has several towers, wants operations side by side.
    is_chosen = config is not None and config.inter_op_parallelism_threads != 0
    return ThreadChoice(not is_chosen and towers == 1)
