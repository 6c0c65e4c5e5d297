"""The program of a graph that a user built: any operations, and the step that the trainer runs.

The graph is open until ``declare``; then it is final, and the session is opened. Steps use calls that are prepared
once for each set of fetches.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ziggurat.backends.tensorflow.arithmetic import tensorflow_arithmetic
from ziggurat.backends.tensorflow.calls import StepRecorder, ThreadChoice, is_number, prepared_call
from ziggurat.backends.tensorflow.describe import light_graph
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.backends.tensorflow.variables import all_variables, check_state, loading
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed
from ziggurat.engine.interruption import BreakOff
from ziggurat.engine.program import NonFiniteStep
from ziggurat.errors import StateError, UnknownNameError, UsageError
from ziggurat.tf.callback import fetch_name
from ziggurat.tf.inputs.base import reason_of_end
from ziggurat.tf.randomness import ancestors, make_resumable, random_operations
from ziggurat.tf.tower import MOVING_SUMMARIES

if TYPE_CHECKING:
    from ziggurat.tf.trainers import Trainer

__all__ = ["GraphProgram", "HookedSession"]

_STEP: Final = "train"


_OTHER_GRAPH: Final = "Build the graph as it was, or load the checkpoint by `session_init=SaverRestore(path)`."


class GraphProgram:
    """Runs the steps of a ``ziggurat.tf`` trainer in a session over its graph.

    Args:
        trainer: whose step it is; its ``train_op`` or its ``run_step`` is one.
        session_creator: makes the session; ``NewSessionCreator()`` where it is None.
        session_init: gives variables their values after they were initialized; None for nothing.
    """

    def __init__(self, trainer: Trainer, session_creator: Any, session_init: Any) -> None:
        self.graph = trainer.graph
        self._trainer = trainer
        self._creator = session_creator
        self._init = session_init
        self.session: Any = None
        """The session; there from ``declare`` on."""
        self._beside: list[Any] = []
        self._after_init: list[Any] = []
        self._when_complete: list[Callable[[], object]] = []
        self._values: dict[str, Any] = {}
        self._variables: dict[str, Any] = {}
        self._load: dict[str, tuple[Any, Any]] = {}
        self._calls: dict[Any, Callable[..., Any]] = {}
        self._settled: dict[tuple[str, ...], Callable[..., Any]] = {}
        """Names to fetch → the call of a plain step, once nothing is left to find out."""
        self._recorder: StepRecorder | None = None
        self._targets: list[Any] = []
        self._threads = ThreadChoice(False)
        self._beside_each_run: list[Any] = []
        self._beside_first_run: list[Any] = []
        self._fed: Sequence[np.ndarray] = ()
        self._asked: tuple[str, ...] = ()
        self._got: Mapping[str, Any] | None = None
        self._time_limit_ms = 0
        self._take_trace: Callable[[Any], object] | None = None
        with self.graph.as_default():
            self.step_variable = tf.train.get_or_create_global_step()
            self._count: Any = None
        self._values.update(getattr(trainer, "compiled_values", {}))
        for each in self.graph.get_collection(MOVING_SUMMARIES):
            if hasattr(each, "tag"):
                self._values[each.tag] = each.tensor

    # ---- while the graph is open

    def run_with_step(self, operation: Any) -> None:
        """Run an operation with every step. Callbacks call it in ``setup_graph``.

        In a step of several session calls, it runs along with the first of them where it needs the batch, else behind
        all.
        """
        self._require_open_graph()
        self._beside.append(operation)

    def run_after_init(self, operation: Any) -> None:
        """Run an operation once, after all variables have their first values, and after a state was loaded."""
        self._require_open_graph()
        self._after_init.append(operation)

    def when_complete(self, action: Callable[[], object]) -> None:
        """Call a function once all callbacks have added to the graph, while it is still open: it sees all variables."""
        self._require_open_graph()
        self._when_complete.append(action)

    @contextmanager
    def extend_graph(self) -> Iterator[dict[str, Any]]:
        """Make the graph the default one; give name → tensor of a training step, to which values may be added.

        Raises:
            StateError: where the graph is final.
        """
        self._require_open_graph()
        with self.graph.as_default():
            yield self._values

    # ---- names

    def tensor(self, name: str) -> Any:
        """Return a tensor or an operation by its name in the graph, or in the first training tower.

        Raises:
            UnknownNameError: where there is none.
        """
        found = self._find(name)
        if found is None:
            known = [*self._values, *(each.name for each in self.graph.get_operations())]
            raise UnknownNameError("tensor of the graph", name, known)
        return found

    def arithmetic(self) -> dict[str, str | int | bool]:
        """Return what decides the last bits: TensorFlow, its threads, devices and switches."""
        return tensorflow_arithmetic(getattr(self._creator, "config", None))

    def names(self) -> Sequence[str]:
        """Return the names that a step can give a value for: all of the graph, asked for by ``in``."""
        return _GraphNames(self)

    def summary_names(self) -> Sequence[str]:
        """Return nothing: ``ziggurat.tf.MergeAllSummaries`` evaluates the summaries of a graph."""
        return ()

    def moving_summary_names(self) -> Mapping[str, float]:
        """Return what ``add_moving_summary`` was given, with each one's decay."""
        entries = self.graph.get_collection(MOVING_SUMMARIES)
        return {each.tag: each.decay for each in entries if hasattr(each, "tag")}

    # ---- the contract

    def declare(self, names: Sequence[str]) -> None:
        """Finalize the graph, open the session, and give all variables their first values."""
        for name in names:
            self.tensor(name)
        with self.graph.as_default():
            for action in self._when_complete:
                action()
            self._prepare_step()
            self._make_random_resumable()
            self._variables = all_variables(self.graph)
            self._load = loading(self._variables)
            if self._init is not None:
                self._init.setup_graph()
            self.session = self._creator.create_session()
        self._threads = ThreadChoice(self._is_plain and _may_use_own_thread(self._trainer, self._creator))
        try:
            if self._recorder is not None:
                self.session.run(self._recorder.initializer)
                self._recorder.open(self.session)
            if self._init is not None:
                with self.graph.as_default(), self.session.as_default():
                    self._init.init(self.session)
            self._run_after_init()
            self.graph.finalize()
        except BaseException:
            self.session.close()
            raise
        # At the latest before the interpreter takes its modules apart: a prepared call of an open session frees itself.
        weakref.finalize(self, self.session.close)

    def connect(self, batches: BatchCycle) -> Feed:
        """Let the input source connect its data with the steps."""
        source = self._trainer.input
        return DirectFeed(batches) if source is None else source.connect(batches, self.session)

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        """Keep values of every step to come in the graph, where the step is the trainer's own ``train_op``."""
        if not self._is_plain or self.session is not None:
            return ()
        values = {name: self.tensor(name) for name in names}
        numbers = {name: value for name, value in values.items() if isinstance(value, tf.Tensor) and is_number(value)}
        if not numbers:
            return ()
        with self.graph.as_default():
            self._prepare_step()
            self._recorder = StepRecorder(numbers, watched, self._targets[0])
        kept = [name for name in self._recorder.names if name not in watched or name in self._recorder.watched]
        is_checked = any(name in watched for name in kept)
        self._targets = self._recorder.checked_operations if is_checked else self._recorder.operations
        return kept

    def recorded(self) -> Mapping[str, np.ndarray]:
        """Return kept name → values of the steps since the last call, oldest first."""
        return {} if self._recorder is None or self.session is None else self._recorder.take()

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Take one step: ``train_op``, or whatever the trainer's ``run_step`` does."""
        names = tuple(names)
        try:
            call = self._settled.get(names)
            if call is None:
                return self._plain_step(batch, names) if self._is_plain else self._users_step(batch, names)
            values = call(*batch)
            if self._recorder is not None:
                self._recorder.count_step()
            return dict(zip(names, values, strict=True)) if names else {}
        except tf.errors.OutOfRangeError as error:
            # Data flows raise their own errors: this is the end of an input that TensorFlow itself reads.
            self._trainer.end_of_input(reason_of_end(error))
            raise BreakOff from error
        except tf.errors.OpError as error:
            name = None if self._recorder is None else self._recorder.non_finite(error)
            if name is not None:
                raise NonFiniteStep(name) from error
            source = self._trainer.input
            cause = (None if source is None else source.error_behind(error)) or self._trainer.explained(error)
            if cause is error:
                raise
            raise cause from error

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Refuse: a graph predicts by a tower that ``ziggurat.tf.InferenceRunner`` or ``get_predictor`` builds."""
        raise UsageError(
            "A graph is evaluated by a tower of its own.",
            received="a callback that evaluates the program",
            advice="Use `InferenceRunner` of `ziggurat.tf`.",
        )

    def hyperparameters(self) -> Mapping[str, float]:
        """Return the values of all single-number variables that are not trained, by name; NaN before the session."""
        if self.session is None:  # callbacks look for names while the graph is open
            return dict.fromkeys(self._settable(), float("nan"))
        return {name: float(value) for name, value in self.session.run(self._settable()).items()}

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Give a single-number variable another value, from the next step on."""
        settable = self._settable()
        if name not in settable:
            raise UnknownNameError("hyperparameter of this graph", name, settable)
        self.assign({name: np.asarray(value, settable[name].dtype.as_numpy_dtype)})

    def state(self) -> dict[str, np.ndarray]:
        """Return every variable by name, local ones included."""
        return {name: np.array(value) for name, value in self.session.run(self._variables).items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave; all or nothing.

        Raises:
            CheckpointError: where names or shapes are of another graph.
        """
        check_state(self._variables, state, _OTHER_GRAPH)
        self.assign({name: state[name] for name in self._variables})
        self._run_after_init()

    def close(self) -> None:
        """Close the session; closing twice does nothing."""
        if self.session is not None:
            self.session.close()

    # ---- beyond the contract

    def assign(self, values: Mapping[str, np.ndarray]) -> None:
        """Give some variables other values, in one call."""
        feeds = {self._load[name][0]: value for name, value in values.items()}
        self.session.run([self._load[name][1] for name in values], feeds)

    def graph_bytes(self) -> bytes:
        """Return the graph as a serialized ``GraphDef``, without large constants."""
        return light_graph(self.graph).SerializeToString()

    def run_in_step(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run a part of the step: of a trainer whose ``run_step`` calls ``hooked_sess.run``.

        The first part of a step also fetches what callbacks asked for, and runs what reads the batch beside the step.

        Args:
            fetches: as ``session.run`` takes them.
            feed_dict: fed beside the batch of the step.
        """
        flat = tuple(fetch_name(each) for each in tf2.nest.flatten(fetches))
        asked = self._asked if self._got is None else ()
        beside = (*self._beside_each_run, *(self._beside_first_run if self._got is None else ()))
        if feed_dict:
            wanted = [self.tensor(name) for name in (*flat, *asked)]
            fed = dict(zip(self._placeholders, self._fed, strict=False)) | dict(feed_dict)
            values = self.session.run([wanted, beside], fed)[0]
        elif not flat and not asked and not beside:
            values = []  # a call of nothing cannot be prepared
        else:
            values = self._call((*flat, *asked), beside)(*self._fed)
        if self._got is None:
            self._got = dict(zip(asked, values[len(flat) :], strict=True))
        return tf2.nest.pack_sequence_as(fetches, values[: len(flat)])

    def limit_time(self, limit_ms: int) -> None:
        """Let each call of the session fail that takes longer, in milliseconds; 0 for no limit."""
        self._time_limit_ms = limit_ms
        self._calls, self._settled = {}, {}

    def trace_next(self, take: Callable[[Any], object]) -> None:
        """Trace the first call of the next step, and hand its ``tf.RunMetadata`` to a function."""
        self._take_trace = take
        self._settled.clear()

    # ---- inside

    @property
    def _is_plain(self) -> bool:
        return self._trainer.runs_train_op

    @property
    def _placeholders(self) -> Sequence[Any]:
        return () if self._trainer.input is None else self._trainer.input.fed

    def _require_open_graph(self) -> None:
        if self.session is not None:
            raise StateError(
                "The graph is final, and it is extended before the training begins.",
                advice="Add operations in the `setup_graph` of a callback.",
            )

    def _prepare_step(self) -> None:
        """Make the operations of a step: once, when no callback adds to it any more."""
        if self._count is not None:
            return
        source = self._trainer.input
        beside = [*self._beside, *(() if source is None else source.step_operations())]
        if self._is_plain:
            with tf.control_dependencies([tf.group(_train_op(self._trainer), *beside, name="ziggurat/step")]):
                self._count = self.step_variable.assign_add(1, read_value=False)
            self._targets = [self._count]
        else:
            self._count = self.step_variable.assign_add(1, read_value=False)
            # Beside a step of several parts: once. What reads the batch runs with the first part, the rest behind all.
            inputs = set() if source is None else {tensor.op for tensor in source.given}
            reading = {id(each) for each in self._beside if inputs & ancestors([each])}
            self._beside_first_run = [each for each in beside if id(each) in reading]
            self._targets = [self._count, *(each for each in beside if id(each) not in reading)]

    def _make_random_resumable(self) -> None:
        """Let the random numbers of the steps follow from the state."""
        source = None if not self._is_plain else self._targets
        found = random_operations(self.graph, source, self._trainer.prediction_scopes)
        if not found:
            return
        if self._is_plain:
            make_resumable(found, self.step_variable.read_value())
            return
        # Each part of a step draws other numbers; the count moves behind the reading, in the same call.
        runs = tf.Variable(0, trainable=False, dtype=tf.int64, name="ziggurat/random_count", use_resource=True)
        number = runs.read_value()
        make_resumable(found, number)
        self._beside_each_run = [runs.assign(number + 1, read_value=False)]

    def _run_after_init(self) -> None:
        if self._after_init:
            self.session.run(self._after_init)

    def _plain_step(self, batch: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
        trials = self._threads.trials_left
        began = time.perf_counter() if trials else 0.0
        is_settled = not trials and self._take_trace is None
        call = self._call(names, tuple(self._targets))
        values = call(*batch)
        if self._recorder is not None:
            self._recorder.count_step()
        if trials and self._threads.has_changed(time.perf_counter() - began):
            self._calls.clear()
        if is_settled:
            self._settled[names] = call
        return dict(zip(names, values, strict=True)) if names else {}

    def _users_step(self, batch: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
        self._fed, self._asked, self._got = batch, names, None
        self._trainer.run_step()
        if self._got is None and (names or self._beside_first_run):  # a step without any session call
            self.run_in_step([])
        # Nothing in it would read the batch.
        self._call((), tuple(self._targets), is_fed=False)()
        return self._got or {}

    def _call(self, names: tuple[str, ...], targets: tuple[Any, ...], *, is_fed: bool = True) -> Callable[..., Any]:
        key = (names, targets) if not targets else (names, tuple(each.name for each in targets))
        call = self._calls.get(key)
        if call is None or self._take_trace is not None:
            found = [self.tensor(name) for name in names]
            operations = [each for each in found if isinstance(each, tf.Operation)]
            tensors = [each for each in found if not isinstance(each, tf.Operation)]
            feeds = self._placeholders if is_fed else ()
            take = self._take_trace
            self._take_trace = None
            inner = prepared_call(
                self.session,
                feeds,
                tensors,
                [*targets, *operations],
                in_own_thread=self._threads.in_own_thread and bool(targets),
                time_limit_ms=self._time_limit_ms,
                trace=take,
            )
            call = inner if not operations else _with_gaps(inner, found)
            if take is None:
                self._calls[key] = call
        return call

    def _find(self, name: str) -> Any:
        if name in self._values:
            value = self._values[name]
            return value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
        for full in (name, *(f"{prefix}/{name}" for prefix in self._trainer.tower_prefixes)):
            try:
                found = self.graph.as_graph_element(full, allow_tensor=True, allow_operation=True)
            except (KeyError, ValueError):
                continue
            # The plain name of an operation with a value means the value; of one without, the operation.
            if isinstance(found, tf.Operation) and found.outputs:
                found = found.outputs[0]
            if isinstance(found, tf.Tensor) and found.dtype == tf.resource:  # a variable: what it holds
                return self.graph.get_tensor_by_name(f"{found.op.name}/Read/ReadVariableOp:0")
            return found
        return None

    def _settable(self) -> dict[str, Any]:
        trained = {each.op.name for each in self.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}
        variables = self._variables or all_variables(self.graph)
        return {
            name: variable
            for name, variable in variables.items()
            if variable.shape.rank == 0 and name not in trained and variable.dtype.base_dtype.is_floating
        }


class HookedSession:
    """The session of a step: what a trainer's ``run_step`` calls, so that callbacks get their values along.

    Args:
        program: whose session.
    """

    def __init__(self, program: GraphProgram) -> None:
        self._program = program
        self.graph = program.graph

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run fetches with the batch of the step; see ``tf.Session.run``."""
        return self._program.run_in_step(fetches, feed_dict)

    def should_stop(self) -> bool:
        """Return whether the training was asked to stop."""
        trainer = self._program._trainer
        return trainer.stop_reason is not None or trainer.finish_reason is not None


class _GraphNames(Sequence[str]):
    """All names of a graph: membership is looked up, and only an error lists them."""

    def __init__(self, program: GraphProgram) -> None:
        self._program = program

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._program._find(name) is not None

    def _listed(self) -> list[str]:
        return [*self._program._values, *(each.name for each in self._program.graph.get_operations())]

    def __getitem__(self, place: Any) -> Any:
        return self._listed()[place]

    def __len__(self) -> int:
        return len(self._listed())

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed())


def _train_op(trainer: Any) -> Any:
    if trainer.train_op is None:
        raise UsageError(
            "A trainer has a `train_op`, or a `run_step` of its own.",
            received=type(trainer).__name__,
            advice="Set `self.train_op` in the trainer, or override `run_step`.",
        )
    return trainer.train_op


def _may_use_own_thread(trainer: Trainer, creator: Any) -> bool:
    """Return whether a small step may be done in the thread that trains: nothing in it waits for something else."""
    source = trainer.input
    config = getattr(creator, "config", None)
    is_set = config is not None and config.inter_op_parallelism_threads != 0
    is_fed = source is None or (bool(source.fed) and not source.step_operations())
    return trainer.may_use_own_thread and is_fed and not is_set


def _with_gaps(call: Callable[..., Any], found: Sequence[Any]) -> Callable[..., Any]:
    """Return a call that gives None for each operation among its fetches, as ``session.run`` does."""
    places = [None if isinstance(each, tf.Operation) else 0 for each in found]

    def call_with_gaps(*arrays: Any) -> list[Any]:
        values = iter(call(*arrays))
        return [None if place is None else next(values) for place in places]

    return call_with_gaps
