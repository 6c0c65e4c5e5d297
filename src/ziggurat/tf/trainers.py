"""Trainers over a graph: the engine's one loop, with a step that is an operation or a method of the trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import Callback, bind_folder, innermost
from ziggurat.engine.interruption import Interruptible
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.run_state import RunState, StepTiming, global_random_state
from ziggurat.engine.trainer import Trainer as EngineTrainer
from ziggurat.errors import ConfigurationError, StateError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.tf import logger
from ziggurat.tf.compiled import compiled_tower
from ziggurat.tf.defaults import DEFAULT_CALLBACKS, DEFAULT_MONITORS
from ziggurat.tf.gradients import filter_none
from ziggurat.tf.inputs.base import InputSource, input_placeholder, source_of
from ziggurat.tf.predictors import OnlinePredictor
from ziggurat.tf.program import GraphProgram, HookedSession
from ziggurat.tf.sessions import NewSessionCreator, SessionInit, device_name
from ziggurat.tf.tower import (
    BaseTowerContext,
    PredictTowerContext,
    TowerFunc,
    TowerTensorHandles,
    TrainTowerContext,
    get_current_tower_context,
)

__all__ = ["NoOpTrainer", "SimpleTrainer", "SingleCostTrainer", "TowerTrainer", "Trainer"]

_FOREVER: Final = 9_999_999
_END_S: Final = 5.0


class Trainer(EngineTrainer):
    """Trains a graph: set ``train_op``, or override ``run_step``, and call ``train``.

    It is the trainer of the engine: the same loop, callbacks, monitors and run state as any job of the studio. The
    graph is the default one at its construction.
    """

    program: GraphProgram  # pyright: ignore[reportIncompatibleVariableOverride]
    """The graph and its session; there once the training begins."""

    may_use_own_thread: ClassVar[bool] = True
    """Whether small steps may be done one operation after the other, in the thread that trains."""

    is_chief: bool = True
    """Whether it is the first process of a distributed training."""

    def __init__(self) -> None:
        # The engine's own constructor needs what is known when the training begins; until then these hold.
        Interruptible.__init__(self)
        self.graph = tf.get_default_graph()
        self.train_op: Any = None
        """An operation or a tensor: one step."""
        self.input: InputSource | None = None
        """Where the batches come from; None where the graph reads them, or the step needs none."""
        self.callbacks: list[Callback] = []
        self.epoch_num = 0
        self.global_step = 0
        self.local_step = -1
        self.max_epoch = 0
        self.starting_epoch = 1
        self.timing = StepTiming()
        self._registered: list[Callback] = []
        self._given_monitors: list[Monitor] = []
        self._session_creator: Any = None
        self._session_init: SessionInit | None = None
        self._resume_from: RunState | None = None
        self._hooked: HookedSession | None = None

    # ---- the step

    def run_step(self) -> None:
        """Take one step. Override it, and call ``self.hooked_sess.run`` in it, for steps of several parts.

        All calls of one step see the same batch, and callbacks get their values with the first.
        """
        self.hooked_sess.run(self.train_op)

    @property
    def runs_train_op(self) -> bool:
        """Whether a step is ``train_op`` and nothing else."""
        return type(self).run_step is Trainer.run_step and "run_step" not in vars(self)

    @property
    def tower_prefixes(self) -> Sequence[str]:
        """Name scopes in which names of values are looked up, after the root."""
        return ()

    @property
    def prediction_scopes(self) -> Sequence[str]:
        """Name scopes of towers that predict: nothing in them belongs to a step."""
        return ()

    @property
    def sess(self) -> Any:
        """The session.

        Raises:
            StateError: before the training has opened it.
        """
        return self._opened().session

    @property
    def hooked_sess(self) -> HookedSession:
        """The session of the step under way; what callbacks ask for is fetched along."""
        if self._hooked is None:
            self._hooked = HookedSession(self._opened())
        return self._hooked

    @property
    def loop(self) -> Trainer:
        """The trainer itself: Tensorpack keeps the counters of the loop in an object of their own."""
        return self

    def explained(self, error: Exception) -> Exception:
        """Return the error to raise for one of TensorFlow's in a step."""
        return error

    def end_of_input(self, reason: str) -> None:
        """Take note that the input has no further batch: the training is complete."""
        self.finish(reason)

    # ---- before the training

    def register_callback(self, cb: Callback | Sequence[Callback]) -> bool:
        """Add a callback, before the training; return whether it is used in this process.

        Raises:
            StateError: where the training has begun.
            UsageError: where it is no callback.
        """
        if isinstance(cb, list | tuple):
            used = [self.register_callback(each) for each in cb]
            return all(used)
        if not isinstance(cb, Callback):
            raise UsageError(
                f"{f'The class {cb.__name__}' if isinstance(cb, type) else 'A ' + type(cb).__name__} is "
                "given as a callback, not an object of a `Callback` class.",
                advice="Make one, such as `ModelSaver()`; a plain function goes into `CallbackFactory(trigger=…)`.",
            )
        if hasattr(self, "program"):
            raise StateError(
                f"The callback {type(cb).__name__} is registered after the training began.",
                advice="Call `register_callback` before `train`.",
            )
        # A wrapper runs where what it wraps does, unless it was told otherwise itself.
        if not self.is_chief and vars(cb).get("chief_only", innermost(cb).chief_only):
            return False
        self._registered.append(cb)
        return True

    def setup_callbacks(self, callbacks: Sequence[Callback], monitors: Sequence[Monitor]) -> None:
        """Take the callbacks and monitors of the training; ``train`` does it."""
        self.register_callback(list(callbacks))
        self._given_monitors = list(monitors) if self.is_chief else []

    def initialize(self, session_creator: Any, session_init: SessionInit | None) -> None:
        """Take how the session is made and what gives the variables their values; ``train`` does it."""
        self._session_creator = session_creator
        self._session_init = session_init

    def resume_from(self, state: RunState | None) -> None:
        """Go on from a run state: weights, optimizer, callbacks, random generators and the position of the data."""
        self._resume_from = state

    def load_state(self, state: RunState) -> None:
        """Take back a run state; the next ``train`` goes on from there.

        Raises:
            CheckpointError: where the state is of another network or another epoch length.
        """
        if state.meta["batches"] is None:  # that of another process, whose data and random numbers are not those here
            own = {"batches": self.batches.state(), "random": global_random_state()}
            state = RunState({**state.meta, **own}, state.arrays)
        super().load_state(state)

    def train(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        session_creator: Any = None,
        session_init: SessionInit | None = None,
        steps_per_epoch: int | None = None,
        starting_epoch: int = 1,
        max_epoch: int = _FOREVER,
    ) -> None:
        """Train until ``max_epoch`` epochs are complete, a callback finishes it, or a stop is requested.

        Args:
            callbacks: in the order in which their hooks are called.
            monitors: sinks of the numbers.
            session_creator: ``NewSessionCreator()`` where it is None.
            session_init: gives variables their values; None for their initializers.
            steps_per_epoch: steps in an epoch; where it is None, the batches of the input.
            starting_epoch: number of the first epoch, from 1.
            max_epoch: number of the last epoch.

        Raises:
            Exception: whatever the step, the data or a callback raised.
        """
        self.setup_callbacks(callbacks, monitors)
        self.initialize(session_creator, session_init)
        self.main_loop(steps_per_epoch, starting_epoch, max_epoch)

    def train_with_defaults(
        self,
        *,
        callbacks: Sequence[Callback] | None = None,
        monitors: Sequence[Monitor] | None = None,
        extra_callbacks: Sequence[Callback] | None = None,
        **arguments: Any,
    ) -> None:
        """Train with the default callbacks behind the given ones, and with the default monitors.

        Args:
            callbacks: the own ones.
            monitors: instead of ``DEFAULT_MONITORS()``.
            extra_callbacks: instead of ``DEFAULT_CALLBACKS()``.
            arguments: the others of ``train``.
        """
        extra = DEFAULT_CALLBACKS() if extra_callbacks is None else extra_callbacks
        sinks = DEFAULT_MONITORS() if monitors is None else monitors
        self.train([*(callbacks or ()), *extra], sinks, **arguments)

    def main_loop(self, steps_per_epoch: int | None, starting_epoch: int, max_epoch: int) -> None:
        """Run the loop; ``train`` does it.

        Raises:
            UsageError: where ``steps_per_epoch`` is not given, and there is no input or it has no length.
            StateError: where the trainer has trained before.
        """
        if hasattr(self, "program"):
            raise StateError(
                "A trainer trains once.",
                received="a second `train`",
                advice="Make another trainer in a new graph, with `session_init=` for the weights.",
            )
        # A trainer of one's own need not name the source that it built its towers with.
        source = self.input = source_of(self.graph) if self.input is None else self.input
        callbacks = [*self._registered]
        steps_per_epoch = self._length_of_epoch(steps_per_epoch)
        bound = [*callbacks, *self._given_monitors]
        folder = logger.get_logger_dir()
        if folder is not None:
            bind_folder(bound, JobFolder(Path(folder)))
        with self.graph.as_default():
            program = GraphProgram(self, self._session_creator or NewSessionCreator(), self._session_init)
            super().__init__(
                program,
                [[]] if source is None else source.batches(),
                callbacks=callbacks,
                monitors=self._given_monitors,
                steps_per_epoch=steps_per_epoch,
            )
            self.starting_epoch = starting_epoch
            self.max_epoch = max_epoch
            self.epoch_num = starting_epoch - 1
            try:
                self.setup()
                if self._resume_from is not None:
                    self.load_state(self._resume_from)
                else:
                    self.global_step = int(program.session.run(program.step_variable))
            except BaseException as error:
                self._after_train(error)  # there will be no training that could call it
                raise
            with program.session.as_default(), _queue_runners(program.session):
                super().train(max_epoch)

    def _length_of_epoch(self, steps_per_epoch: int | None) -> int:
        """Return the steps of an epoch: those given, or the batches of the input."""
        if steps_per_epoch is not None:
            return steps_per_epoch
        if self.input is None:
            raise UsageError(
                "Neither `steps_per_epoch` is given nor an input whose batches say how long an epoch is.",
                advice="Give `steps_per_epoch`.",
            )
        return max(1, self.input.size() // max(1, self.input.tower_count))

    def _opened(self) -> GraphProgram:
        program = getattr(self, "program", None)
        if program is None or program.session is None:
            raise StateError(
                "The session is there once the training begins.",
                received="a trainer that does not train yet",
                advice="Use it from `before_train` of a callback on.",
            )
        return program


@contextmanager
def _queue_runners(session: Any) -> Iterator[None]:
    """Let the threads of a graph's own queues (``tf.train.QueueRunner``) run inside."""
    coordinator = tf.train.Coordinator(clean_stop_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError))
    threads = [
        thread
        for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        for thread in runner.create_threads(session, coord=coordinator, daemon=True, start=True)
    ]
    try:
        yield
    finally:
        coordinator.request_stop()
    # An error of such a thread closes its queue, which looks like the end of the data.
    coordinator.join(threads, stop_grace_period_secs=_END_S, ignore_live_threads=True)


class TowerTrainer(Trainer):
    """Base of trainers whose model is one tower function: it builds training towers and, for predictors, others."""

    def __init__(self) -> None:
        super().__init__()
        self._tower_func: TowerFunc | None = None

    @property
    def tower_func(self) -> TowerFunc:
        """The tower function; it is set once.

        Raises:
            StateError: where it was not set yet, or is set a second time.
        """
        if self._tower_func is None:
            raise StateError(
                f"The {type(self).__name__} has no tower function.",
                advice="Call `setup_graph`, or set `self.tower_func = TowerFunc(function, signature)`.",
            )
        return self._tower_func

    @tower_func.setter
    def tower_func(self, func: TowerFunc) -> None:
        if self._tower_func is not None:
            raise StateError("The tower function of a trainer is set once.", advice="Make another trainer.")
        if not isinstance(func, TowerFunc):
            raise ConfigurationError(
                f"`tower_func` is a {type(func).__name__}, not a `TowerFunc`.",
                advice="Write `TowerFunc(function, input_signature)`.",
            )
        self._tower_func = func

    def set_tower_func(self, tower_func: TowerFunc) -> None:
        """Set the tower function; the older form of setting ``tower_func``."""
        self.tower_func = tower_func

    @property
    def input_signature(self) -> list[Any]:
        """The ``tf.TensorSpec`` of each input."""
        return self.tower_func.input_signature

    @property
    def inputs_desc(self) -> list[Any]:
        """Older name of ``input_signature``."""
        return self.input_signature

    @property
    def towers(self) -> TowerTensorHandles:
        """The towers that were built, those of predictors included."""
        return self.tower_func.towers

    @property
    def tower_prefixes(self) -> Sequence[str]:
        """The name scope of the first training tower."""
        if self._tower_func is None:
            return ()
        return [each.ns_name for each in self._tower_func.towers.training() if each.ns_name][:1]

    @property
    def prediction_scopes(self) -> Sequence[str]:
        """The name scopes of towers that predict."""
        return () if self._tower_func is None else [each.ns_name for each in self._tower_func.towers.inference()]

    def get_predictor(self, input_names: Sequence[str], output_names: Sequence[str], device: int | str = 0) -> Any:
        """Return a function from one array an input to one array an output, with the variables of the training.

        The tower is built without training, under the names of the training's variables. Callbacks call it in
        ``setup_graph``.

        Args:
            input_names: inputs of the tower function, or other tensors of the tower.
            output_names: tensors of the tower, by their names in it.
            device: number of a GPU, or a device's name; the tower is on the processor where there is no GPU.

        Raises:
            StateError: where the graph is final and no such tower was built.
            UnknownNameError: where the tower has no such tensor.
        """
        place = str(device).strip("/").replace(":", "-")
        tower = self.predict_tower(f"tower-pred-{place}", device)
        return OnlinePredictor(tower.get_tensors(input_names), tower.get_tensors(output_names), owner=self)

    def predict_tower(self, name: str, device: int | str = 0, vs_name: str = "") -> Any:
        """Return the handle of a tower that predicts; built where there is none of that name.

        Args:
            name: its name scope.
            device: number of a GPU, or a device's name.
            vs_name: variable scope of the training tower whose variables it takes.
        """
        found = next((each for each in self.towers if each.ns_name == name and not each.is_training), None)
        if found is not None:
            return found
        if self.graph.finalized:
            raise StateError(
                "A tower for predictions is built while the graph is open.",
                received=f"the tower `{name}` after the training has begun",
                advice="Call `get_predictor` in the `setup_graph` of a callback.",
            )
        with self.graph.as_default():
            placeholders = [input_placeholder(spec, reused=True) for spec in self.input_signature]
            with tf.device(device_name(device)), tf.variable_scope(tf.get_variable_scope(), reuse=True):
                self.build_tower(PredictTowerContext(name, vs_name), placeholders)
        return self.towers[len(self.towers) - 1]

    def build_tower(self, context: BaseTowerContext, inputs: Sequence[Any]) -> Any:
        """Call the tower function under a context; return what it returns."""
        with context:
            return self.tower_func(*inputs)


class SingleCostTrainer(TowerTrainer):
    """Base of trainers that minimize one cost with one optimizer."""

    COLOCATE_GRADIENTS_WITH_OPS: ClassVar[bool] = True
    """Whether gradients are computed on the devices of their operations."""

    GATE_GRADIENTS: ClassVar[bool] = False
    """Whether all gradients of an operation are computed before any is used."""

    AGGREGATION_METHOD: ClassVar[Any] = tf.AggregationMethod.DEFAULT
    """How gradients of one tensor are added up."""

    XLA_COMPILE: ClassVar[bool] = False
    """Whether the tower and its gradients are compiled by XLA. Of a compiled tower, steps can fetch ``cost`` and what
    ``add_moving_summary`` was given; its other summaries are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled_values: dict[str, Any] = {}
        """Name → tensor of what can be fetched of a compiled tower."""

    def setup_graph(
        self,
        input_signature: Sequence[Any],
        input: InputSource,  # noqa: A002 - Tensorpack's name
        get_cost_fn: Callable[..., Any],
        get_opt_fn: Callable[[], Any],
    ) -> None:
        """Build the graph of the training: towers, gradients and the step.

        Args:
            input_signature: a ``tf.TensorSpec`` for each input.
            input: where the batches come from.
            get_cost_fn: takes one tensor an input and returns the cost, a single number.
            get_opt_fn: returns a ``tf.train.Optimizer``.

        Raises:
            ConfigurationError: where ``input`` is no input source.
        """
        if not isinstance(input, InputSource):
            raise ConfigurationError(
                f"`input` is a {type(input).__name__}, not an input source.",
                advice="Wrap a data flow: `QueueInput(df)`, or `dataflow=df` in a `TrainConfig`.",
            )
        memo: list[Any] = []

        def optimizer() -> Any:
            if not memo:
                memo.append(get_opt_fn())
            return memo[0]

        with self.graph.as_default():
            self.tower_func = TowerFunc(get_cost_fn, input_signature)
            for callback in [*input.setup(self.tower_func.input_signature), *self._setup_input(input)]:
                self.register_callback(callback)
            self.input = input
            for callback in self._setup_graph(input, self.tower_func, optimizer) or ():
                self.register_callback(callback)

    def _setup_input(self, source: InputSource) -> Sequence[Callback]:
        return ()

    def _setup_graph(
        self, source: InputSource, get_cost_fn: TowerFunc, get_opt_fn: Callable[[], Any]
    ) -> Sequence[Callback]:
        """Build towers and ``train_op``; return callbacks that they need."""
        raise NotImplementedError

    def get_grads(self, source: InputSource, get_cost_fn: TowerFunc, get_opt_fn: Callable[[], Any]) -> Any:
        """Build one tower under the current context; return its (gradient, variable) pairs, without empty ones."""
        context = get_current_tower_context()
        assert context is not None
        inputs = source.get_input_tensors()
        if not context.is_training:
            get_cost_fn(*inputs)
            return None

        def build(*tensors: Any) -> tuple[Any, list[tuple[Any, Any]]]:
            return self._cost_and_gradients(context, get_cost_fn(*tensors), get_opt_fn())

        if not self.XLA_COMPILE:
            return build(*inputs)[1]
        cost, pairs = compiled_tower(context, build, inputs)
        if context.is_main_training_tower:
            self.compiled_values["cost"] = cost
        return pairs

    def _cost_and_gradients(
        self, context: BaseTowerContext, cost: Any, optimizer: Any
    ) -> tuple[Any, list[tuple[Any, Any]]]:
        if not isinstance(cost, tf.Tensor) or cost.shape.rank not in (0, None):
            raise UsageError(
                "A tower function for training returns the cost, a single number.",
                received=f"shape {cost.shape}" if isinstance(cost, tf.Tensor) else type(cost).__name__,
                advice="Return `tf.reduce_mean(...)` of the losses.",
            )
        trained = context.get_collection_in_tower(tf.GraphKeys.TRAINABLE_VARIABLES)
        variables = trained if context.has_own_variables and context.vs_name else tf.trainable_variables()
        pairs = optimizer.compute_gradients(
            cost,
            var_list=variables,
            gate_gradients=(self.GATE_GRADIENTS and tf.train.Optimizer.GATE_OP) or tf.train.Optimizer.GATE_NONE,
            colocate_gradients_with_ops=self.COLOCATE_GRADIENTS_WITH_OPS,
            aggregation_method=self.AGGREGATION_METHOD,
        )
        return cost, filter_none(pairs)


class SimpleTrainer(SingleCostTrainer):
    """Trains one tower."""

    def _setup_graph(
        self, source: InputSource, get_cost_fn: TowerFunc, get_opt_fn: Callable[[], Any]
    ) -> Sequence[Callback]:
        with TrainTowerContext(""):
            pairs = self.get_grads(source, get_cost_fn, get_opt_fn)
            self.train_op = get_opt_fn().apply_gradients(pairs, name="train_op")
        return []


class NoOpTrainer(SimpleTrainer):
    """Takes no steps: the callbacks run, epoch after epoch, as in a training."""

    def run_step(self) -> None:
        """Do nothing."""
        self.hooked_sess.run([])
