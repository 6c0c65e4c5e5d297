"""Evaluation during a training on graphs: every sample of a validation set once, in a tower that predicts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow.adapting import method_of
from ziggurat.dataflow.base import DataFlow, UnknownLengthError
from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.validation import Inferencer
from ziggurat.engine.callbacks.validation import InferenceRunner as EngineInferenceRunner
from ziggurat.engine.feed import held_batch
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.inputs.base import FedArray, FeedInput, FlowInput, InputSource, check_components
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.predictors import value_tensor
from ziggurat.tf.tower import PredictTowerContext, TowerFunc, TowerTensorHandle
from ziggurat.tf.trainers import Trainer, device_name

__all__ = ["DataParallelInferenceRunner", "InferenceRunner", "InferenceRunnerBase"]

_AHEAD: Final = 4
"""Batches that are prepared while the tower works on another."""

_END: Final = object()


class InferenceRunnerBase(EngineInferenceRunner):
    """Base of runners over graphs: an input source, and inferencers over all of its batches.

    Args:
        input: a data flow (or any iterable that can be iterated again), or an input source.
        infs: an inferencer, or several.
        periods: ``every_k_epochs``, ``every_k_steps`` and ``before_train`` of ``ziggurat.callbacks.InferenceRunner``.
    """

    def __init__(
        self,
        input: InputSource | Iterable[Any],  # noqa: A002 - Tensorpack's name
        infs: Inferencer | Sequence[Inferencer],
        **periods: Any,
    ) -> None:
        source = _readable(input)
        super().__init__(source.ds if isinstance(source, FlowInput) else (), infs, **periods)
        self._source = source

    @property
    def input_source(self) -> InputSource:
        """Where the batches come from."""
        return self._source


class InferenceRunner(InferenceRunnerBase):
    """Runs a tower in prediction mode over a validation set and puts what the inferencers make of it.

    The tower function is built once more, with the variables of the training; names of inferencers are looked up in
    that tower. A data flow is read to its end, so every sample counts once, the smaller last batch included: batch with
    ``BatchData(..., remainder=True)``. A source that TensorFlow itself reads runs for its ``size()``, or until its end
    where it has none. What stands after it in the list, and every saver wherever it stands, sees the new numbers.

    Args:
        input: a data flow (or any iterable that can be iterated again), or an input source.
        infs: an inferencer, or several.
        tower_name: name scope of the tower; runners of one training have different ones.
        tower_func: another tower function; the trainer's where it is None.
        device: number of a GPU, or a device's name; the processor where there is no such GPU.

    Raises:
        UsageError: from the training, where its trainer has no tower function and none was given.
        ConfigurationError: from the training, where the name of the tower is taken.
        DataError: from the training, where the set has no batch, or one that does not fit the inputs.
    """

    def __init__(
        self,
        input: InputSource | Iterable[Any],  # noqa: A002 - Tensorpack's name
        infs: Inferencer | Sequence[Inferencer],
        tower_name: str = "InferenceTower",
        tower_func: TowerFunc | None = None,
        device: int | str = 0,
        **periods: Any,
    ) -> None:
        super().__init__(input, infs, **periods)
        self._tower_name = tower_name
        self._tower_func = tower_func
        self._devices: Sequence[int | str] = (device,)
        self._towers: list[TowerTensorHandle] = []
        self._helpers: list[Callback] = []
        self._calls: dict[int, Callable[..., Sequence[Any]]] = {}
        self._rows: list[Any] = []

    def declares(self) -> Sequence[str]:
        """Return nothing: its values are those of a tower of its own, not of the training step."""
        return ()

    def setup_graph(self) -> None:
        """Build the tower, and find the values of all inferencers in it."""
        trainer = self.trainer
        if not isinstance(trainer, Trainer):
            raise UsageError(
                f"A {type(trainer).__name__} cannot use this `InferenceRunner`, which is for trainers over graphs.",
                advice="Use that of `ziggurat.callbacks`.",
            )
        function = self._tower_func or _tower_func_of(trainer)
        with trainer.graph.as_default():
            self._helpers = self._source.setup(function.input_signature)
            self._towers = [
                self._built(trainer, function, number, device) for number, device in enumerate(self._devices)
            ]
            # Weighs the numbers of batches that only TensorFlow sees.
            self._rows = [] if self._source.fed else [_row_count(self._towers[0])]
            for tower in self._towers:
                for name in self._names:
                    _fetch(tower, name)
        for helper in self._helpers:
            helper.trainer = trainer
            helper.setup_graph()
        reset = method_of(self._flow, "reset_state")
        if reset is not None:
            reset()

    def before_train(self) -> None:
        """Start what the source needs; run at the start of the job where that was asked for."""
        for helper in self._helpers:
            helper.before_train()
        super().before_train()

    def after_train(self) -> None:
        """Free the source."""
        super().after_train()
        for helper in self._helpers:
            helper.after_train()
        self._calls.clear()

    @property
    def _names(self) -> list[Any]:
        return list(dict.fromkeys(name for inferencer in self._inferencers for name in inferencer.names()))

    def _built(self, trainer: Any, function: TowerFunc, number: int, device: int | str) -> TowerTensorHandle:
        name = self._tower_name if len(self._devices) == 1 else f"{self._tower_name}{number}"
        if any(each.ns_name == name for each in function.towers):
            raise ConfigurationError(
                "Each runner of a training has a tower of its own.",
                received=f"a second tower `{name}`",
                advice="Give the runners different names by `tower_name`.",
            )
        with tf.device(device_name(device)), tf.variable_scope(tf.get_variable_scope(), reuse=True):
            inputs = self._source.get_input_tensors()
            with PredictTowerContext(name):
                function(*inputs)
        return function.towers[len(function.towers) - 1]

    def _evaluated(self) -> Iterator[tuple[Mapping[Any, Any], Any]]:
        """Yield the values of each batch, with the batch itself, or with its number of rows in the place of data."""
        names = self._names
        if not isinstance(self._source, FlowInput):
            for values in self._passes():
                *fetched, rows = values
                yield dict(zip(names, fetched, strict=True)), [np.broadcast_to(np.int8(0), (int(rows),))]
            return
        batches = _prepared(self._flow, self._source.signature)
        batches = batches if isinstance(self._source, FeedInput) else _ahead(batches, _AHEAD)
        while group := list(islice(batches, len(self._towers))):
            values = self._call(len(group))(*(array for arrays, _ in group for array in arrays))
            for place, (_, batch) in enumerate(group):
                part = values[place * len(names) : (place + 1) * len(names)]
                yield dict(zip(names, part, strict=True)), batch

    def _passes(self) -> Iterator[Sequence[Any]]:
        """Yield the values of each batch of a source that TensorFlow reads."""
        self._source.reset_state()
        call = self._call(1)
        try:
            left: int | None = self._source.size()
        except (UnknownLengthError, NotImplementedError):
            left = None
        while left is None or left > 0:
            try:
                yield call()
            except tf.errors.OutOfRangeError:
                return
            except tf.errors.OpError as error:
                # Of a source that knows which error of a data flow TensorFlow has replaced by its own.
                cause = getattr(self._source, "error_behind", lambda _: None)(error)
                if cause is None:
                    raise
                raise cause from error
            left = None if left is None else left - 1

    def _call(self, towers: int) -> Callable[..., Sequence[Any]]:
        """Return the prepared call of the first so many towers, each with a batch of its own."""
        call = self._calls.get(towers)
        if call is None:
            per_tower = len(self._source.fed) // len(self._towers)
            fetches = [_fetch(tower, name) for tower in self._towers[:towers] for name in self._names]
            trainer: Any = self.trainer
            call = prepared_call(trainer.sess, self._source.fed[: towers * per_tower], [*fetches, *self._rows])
            self._calls[towers] = call
        return call


class DataParallelInferenceRunner(InferenceRunner):
    """An ``InferenceRunner`` with a tower on each of several devices: they work on as many batches at a time.

    Every batch counts once, those that are left for the last call, too: they run on the first towers.

    Args:
        input: a data flow, or an input source over one.
        infs: an inferencer, or several.
        gpus: numbers of GPUs or names of devices, or how many GPUs.
        tower_name: start of the name scopes of the towers.
        tower_func: another tower function; the trainer's where it is None.

    Raises:
        ConfigurationError: where there is no device, or the source is none over a data flow.
    """

    def __init__(
        self,
        input: InputSource | Iterable[Any],  # noqa: A002 - Tensorpack's name
        infs: Inferencer | Sequence[Inferencer],
        gpus: int | Sequence[int | str],
        tower_name: str = "InferenceTower",
        tower_func: TowerFunc | None = None,
        **periods: Any,
    ) -> None:
        super().__init__(input, infs, tower_name, tower_func, **periods)
        self._devices = list(range(gpus)) if isinstance(gpus, int) else list(gpus)
        if not self._devices:
            raise ConfigurationError("There is no device for inference: `gpus` is empty.", advice="Name at least one.")
        if not isinstance(self._source, FlowInput):
            raise ConfigurationError(
                "Data-parallel inference hands out the batches of a data flow.",
                received=type(self._source).__name__,
                advice="Give the data flow itself, or use `InferenceRunner`.",
            )


def _readable(given: InputSource | Iterable[Any]) -> InputSource:
    """Return the source of an evaluation: one pass at a time, and nothing staged ahead for the next one."""
    if not isinstance(given, InputSource):
        return FeedInput(given, infinite=False)
    inner = getattr(given, "input", None)  # of a source that stages the batches of another one
    if isinstance(inner, InputSource):
        return _readable(inner)
    flow = getattr(given, "dataset", None)  # a data flow in the place of a dataset of TensorFlow
    return QueueInput(flow) if isinstance(flow, DataFlow) else given


def _tower_func_of(trainer: Trainer) -> TowerFunc:
    function = getattr(trainer, "tower_func", None)
    if function is None:
        raise UsageError(
            f"A {type(trainer).__name__} has no tower function, which an `InferenceRunner` builds once more.",
            advice="Use a trainer of towers, or give `tower_func=TowerFunc(function, input_signature)`.",
        )
    return function


def _fetch(tower: TowerTensorHandle, name: Any) -> Any:
    """Return what a name means in a tower; a tensor means itself, and a variable its value."""
    return value_tensor(tower.get_tensor(name) if isinstance(name, str) else name)


def _row_count(tower: TowerTensorHandle) -> Any:
    """Return a tensor with the number of rows of a tower's first input; 1 for an input without rows."""
    first = next(iter(tower.inputs), None)
    if first is None or first.shape.rank == 0:
        return tf.constant(1)
    return tf.shape(first)[0]


def _prepared(flow: Iterable[Any], signature: Sequence[Any]) -> Iterator[tuple[list[np.ndarray], Any]]:
    """Yield (arrays, batch) of one pass: one checked array an input, and the batch as the flow gave it."""
    inputs = [FedArray(spec) for spec in signature]
    for batch in flow:
        parts = check_components("a batch", batch, signature)
        yield [each.array(part) for each, part in zip(inputs, parts, strict=True)], batch


def _ahead(batches: Iterator[Any], capacity: int) -> Iterator[Any]:
    """Yield batches that a thread prepares; an error of the data is raised behind the batches before it."""
    ready: queue.Queue[Any] = queue.Queue(capacity)
    is_ended = threading.Event()

    def hand_over(item: Any) -> bool:
        while not is_ended.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def fill() -> None:
        try:
            for batch in batches:
                if not hand_over((held_batch(list(batch)), None)):
                    return
            hand_over((_END, None))
        except BaseException as error:
            hand_over((_END, error))

    thread = threading.Thread(target=fill, name="inference-batches", daemon=True)
    thread.start()
    try:
        while True:
            batch, error = ready.get()
            if error is not None:
                raise error
            if batch is _END:
                return
            yield batch
    finally:
        is_ended.set()
        thread.join(1.0)
