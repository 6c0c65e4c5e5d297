"""Callbacks over operations, tensors and variables of the graph."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import cv2
import numpy as np

from ziggurat.atomic import replaced_file
from ziggurat.backends.tensorflow.optimizers import average_weights
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import NeedsFolder, missing_folder
from ziggurat.engine.callbacks.numerics import is_finite, non_finite_error
from ziggurat.engine.callbacks.setters import HyperParam
from ziggurat.engine.callbacks.summaries import ProcessTensors
from ziggurat.errors import ConfigurationError, DataError, StateError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback

__all__ = [
    "CheckNumerics",
    "DumpParamAsImage",
    "DumpTensorAsImage",
    "GraphProfiler",
    "GraphVarParam",
    "MovingAverageWeights",
    "RunOp",
    "RunUpdateOps",
    "SessionRunTimeout",
    "StartProcOrThread",
    "TensorPrinter",
]

# The writer of Chrome's traces has no public name.
_Timeline: Final = importlib.import_module("tensorflow.python.client.timeline").Timeline


class RunOp(Callback):
    """Runs an operation: before the training, at each trigger, or along with each step.

    Args:
        op: the operation, or a function that makes it once the graph of the training exists.
        run_before: run it before the first step.
        run_as_trigger: run it at each trigger: after every epoch, or when a wrapper says so.
        run_step: run it along with every step, in no certain order to the other operations of the step.
        verbose: log each run outside of a step.

    Raises:
        UsageError: from the training, where there is no operation.
    """

    chief_only = False
    """Every process of a distributed training has its variables, and runs what changes them."""

    def __init__(
        self,
        op: Any,
        run_before: bool = True,
        run_as_trigger: bool = True,
        run_step: bool = False,
        verbose: bool = False,
    ) -> None:
        self._given = op
        self.run_before = run_before
        self.run_as_trigger = run_as_trigger
        self.run_step = run_step
        self.verbose = verbose
        self._op: Any = None

    def _setup_graph(self) -> None:
        with self.graph.as_default():
            self._op = self._given() if callable(self._given) else self._given
        if self._op is None or isinstance(self._op, int | float):
            raise UsageError(
                "`RunOp` runs an operation or a tensor, or what a function returns.",
                received=repr(self._op),
                advice="Return the operation from the function.",
            )

    def _before_train(self) -> None:
        if self.run_before:
            self._run()

    def _trigger(self) -> None:
        if self.run_as_trigger:
            self._run()

    def _before_run(self, _: Any) -> Any:
        return [self._op] if self.run_step else None

    def hooks(self) -> frozenset[str]:
        """Leave out what was not asked for."""
        off = set() if self.run_step else {"before_run", "after_run"}
        return super().hooks() - off

    def _run(self) -> None:
        if self.verbose:
            logger.info("Running %s.", getattr(self._op, "name", self._op))
        self.trainer.sess.run(self._op)


class RunUpdateOps(Callback):
    """Runs the operations of a collection with every step: the updates of batch normalization.

    Args:
        collection: the collection; ``UPDATE_OPS`` where it is None.
    """

    chief_only = False
    """Every process of a distributed training keeps running averages: each of them predicts."""

    def __init__(self, collection: str | None = None) -> None:
        self.collection = collection or tf.GraphKeys.UPDATE_OPS

    def setup_graph(self) -> None:
        """Let the program run them."""
        operations: list[Any] = self.graph.get_collection(self.collection)
        if operations:
            with self.graph.as_default():
                update = tf.group(*operations, name="ziggurat/update_ops")
                self.trainer.program.run_with_step(update)


class CheckNumerics(Callback):
    """Ends the training with ``NonFiniteError`` where a trained variable has NaN or infinity.

    Args:
        run_as_trigger: look at each trigger: after every epoch, or when a wrapper says so.
        run_step: look after every step.

    Raises:
        NonFiniteError: from the training; ``details`` has step, name, and the last good checkpoint.
    """

    def __init__(self, run_as_trigger: bool = True, run_step: bool = False) -> None:
        self.run_as_trigger = run_as_trigger
        self.run_step = run_step
        self._names: list[str] = []
        self._are_finite: Any = None

    def hooks(self) -> frozenset[str]:
        """Leave out what was not asked for."""
        return super().hooks() - (set() if self.run_step else {"trigger_step"})

    def _setup_graph(self) -> None:
        with self.graph.as_default(), tf.name_scope("ziggurat/check_numerics/"):
            # Integers have neither; a graph without trained variables has nothing to look at.
            variables = [each for each in tf.trainable_variables() if each.dtype.base_dtype.is_floating]
            self._names = [each.op.name for each in variables]
            checks = [tf.reduce_all(tf.math.is_finite(each)) for each in variables]
            self._are_finite = tf.stack(checks) if checks else tf.ones([0], tf.bool)

    def _trigger_step(self) -> None:
        self._check()

    def _trigger(self) -> None:
        if self.run_as_trigger:
            self._check()

    def _check(self) -> None:
        for name, is_good in zip(self._names, self.trainer.sess.run(self._are_finite), strict=True):
            if not is_good:
                raise non_finite_error(self.trainer, name)


class MovingAverageWeights(Callback):
    """Keeps an exponential moving average of each trained variable, as ``ziggurat/averages/<name>``.

    They begin with the weights that the training begins with, those that were loaded included, and move behind each
    step. Whoever loads a checkpoint of the training (``SaverRestore``) gets them in the place of the weights; a
    training that is resumed takes both as they were.

    Args:
        decay: in the long run, in (0, 1); the first steps use smaller ones.
    """

    def __init__(self, decay: float = 0.999) -> None:
        if not 0 < decay < 1:
            raise ConfigurationError(f"`decay` is {decay}, not in (0, 1).", advice="0.999 is a usual value.")
        self._decay = decay
        self._start: Any = None
        self._is_resumed = False

    def _setup_graph(self) -> None:
        trainer, program = self.trainer, self.trainer.program
        # Beside a step of several parts it runs behind them as it is.
        behind = trainer.train_op if trainer.runs_train_op else tf.no_op()
        with self.graph.as_default(), self.graph.name_scope(None):
            averages = average_weights(self._decay, tf.trainable_variables(), program.step_variable, behind)
        self._start = averages.start
        program.run_with_step(averages.update)

    def _before_train(self) -> None:
        if not self._is_resumed:
            self.trainer.sess.run(self._start)

    def state(self) -> Any:
        """Return that the averages have begun: they are among the variables."""
        return {"has_begun": True}

    def load_state(self, state: Any) -> None:
        """Take note that the averages have begun."""
        self._is_resumed = bool(state["has_begun"])


class TensorPrinter(ProcessTensors):
    """Logs values of every step; ``PeriodicCallback`` makes it rarer.

    Args:
        names: values of the graph.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, self._print)

    def _print(self, *values: Any) -> None:
        for name, value in zip(self._names, values, strict=True):
            logger.info("%s: %s", name.removesuffix(":0"), value)


class DumpTensorAsImage(Callback, NeedsFolder):
    """Writes a tensor or a variable as ``<prefix>-<step>.png`` at each trigger, and hands it to the monitors.

    What depends on the input is computed once more, with the newest batch. A source that feeds nothing gives another
    batch for it.

    Args:
        tensor_name: the tensor or variable.
        prefix: start of the file's name, and the tag; the name of the tensor where it is None.
        map_func: makes the image of the value: (H, W) or (H, W, C) with C of 1 or 3 (RGB).
        scale: what the image is multiplied by; it is cut to [0, 255] then.

    Raises:
        UsageError: from the training, where there is no folder.
        DataError: from the training, where the value is no image.
        StorageError: from the training, where the disk is full.
    """

    def __init__(
        self,
        tensor_name: str,
        prefix: str | None = None,
        map_func: Callable[[np.ndarray], Any] | None = None,
        scale: float = 255,
    ) -> None:
        self.tensor_name = tensor_name
        self.prefix = (prefix or tensor_name.removesuffix(":0")).replace("/", "-")
        self.map_func = map_func
        self.scale = scale
        self._folder: Path | None = None
        self._tensor: Any = None

    def use_folder(self, folder: JobFolder) -> None:
        """Write into the folder of the training."""
        self._folder = self._folder or folder.path

    def _setup_graph(self) -> None:
        if self._folder is None:
            raise missing_folder(self)
        [self._tensor] = self.get_tensors_maybe_in_tower([self.tensor_name])

    def _trigger(self) -> None:
        trainer = self.trainer
        fed = [] if trainer.input is None else trainer.input.fed
        feeds = dict(zip(fed, trainer.batch or (), strict=False))
        value = trainer.sess.run(self._tensor, feeds)
        pixels = _pixels(value if self.map_func is None else self.map_func(value), self.scale, self.tensor_name)
        trainer.monitors.put_image(self.prefix, pixels)
        assert self._folder is not None
        ordered = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.ndim == 3 and pixels.shape[2] == 3 else pixels
        path = self._folder / f"{self.prefix}-{self.global_step}.png"
        with replaced_file(path, "Images", durable=False, advice="Free space on the disk.") as temporary:
            temporary.write_bytes(cv2.imencode(".png", ordered)[1].tobytes())


DumpParamAsImage = DumpTensorAsImage


class GraphVarParam(HyperParam):
    """A single-number variable of the graph as a hyperparameter. Callbacks take its plain name instead.

    Args:
        name: ``learning_rate`` or ``learning_rate:0``.
        shape: of the variable; setters set single numbers, ``()``.
    """

    def __init__(self, name: str, shape: Sequence[int] = ()) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.readable_name = name.removesuffix(":0")
        self._trainer: Any = None
        self._variable: Any = None

    def bind(self, trainer: Any) -> None:
        """Find the variable.

        Raises:
            UnknownNameError: where the graph has none of that name.
            ConfigurationError: where it is of another shape.
        """
        variables = {each.op.name: each for each in trainer.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
        if self.readable_name not in variables:
            raise UnknownNameError("variable of the graph", self.readable_name, variables)
        self._variable, self._trainer = variables[self.readable_name], trainer
        if not self._variable.shape.is_compatible_with(self.shape):
            raise ConfigurationError(
                f"shape={self.shape} does not fit the variable `{self.readable_name}`, which is of shape "
                f"{self._variable.shape}.",
                advice="Give that shape.",
            )

    def get_value(self) -> Any:
        """Return the value that holds now: a number, or an array where it has a shape."""
        value = self._bound().sess.run(self._variable)
        return float(value) if self.shape == () else value

    def set_value(self, v: Any) -> None:
        """Let another value hold from the next step on.

        Raises:
            ConfigurationError: for a fraction where the variable holds whole numbers.
        """
        trainer = self._bound()
        dtype = np.dtype(self._variable.dtype.base_dtype.as_numpy_dtype)
        if dtype.kind in "iu" and not np.array_equal(np.asarray(v), np.asarray(v).astype(dtype)):
            raise ConfigurationError(
                f"The variable `{self.readable_name}` holds whole numbers, not {v}.", advice="Round the value."
            )
        trainer.program.assign({self.readable_name: np.asarray(v, dtype)})

    def _bound(self) -> Any:
        if self._trainer is None:
            raise StateError(
                f"The variable `{self.readable_name}` belongs to a training.",
                advice="Use it in a callback of a trainer, from `before_train` on.",
            )
        return self._trainer


class SessionRunTimeout(Callback):
    """Ends the training with ``tf.errors.DeadlineExceededError`` where a step takes longer than it may.

    Args:
        timeout_in_ms: milliseconds, above 0.
    """

    chief_only = False

    def __init__(self, timeout_in_ms: int) -> None:
        if timeout_in_ms <= 0:
            raise ConfigurationError(
                f"`timeout_in_ms` is {timeout_in_ms}, not above 0.", advice="Give milliseconds: 60000 for a minute."
            )
        self.timeout_in_ms = int(timeout_in_ms)

    def _setup_graph(self) -> None:
        self.trainer.program.limit_time(self.timeout_in_ms)


class GraphProfiler(Callback, NeedsFolder):
    """Traces steps: how long each operation takes, where, and with how much memory. Wrap it in ``PeriodicCallback``.

    Args:
        dump_metadata: write ``runmetadata-<step>.pb``: ``tf.RunMetadata``.
        dump_tracing: write ``chrome-trace-<step>.json`` for ``chrome://tracing`` and Perfetto.
        dump_event: write the trace for TensorBoard.

    Raises:
        UsageError: from the training, where there is no folder.
    """

    def __init__(self, dump_metadata: bool = False, dump_tracing: bool = True, dump_event: bool = False) -> None:
        self._dumps: dict[Literal["metadata", "tracing", "event"], bool] = {
            "metadata": dump_metadata,
            "tracing": dump_tracing,
            "event": dump_event,
        }
        self._folder: Path | None = None
        self._trace: Any = None
        self._events: Any = None

    def use_folder(self, folder: JobFolder) -> None:
        """Write into the folder of the training."""
        self._folder = self._folder or folder.path / "profiler"

    def _setup_graph(self) -> None:
        if self._folder is None:
            raise missing_folder(self)

    def _before_train(self) -> None:
        assert self._folder is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._dumps["event"]:
            self._events = tf.summary.FileWriter(str(self._folder), self.graph)

    def _before_run(self, _: Any) -> None:
        self.trainer.program.trace_next(self._take)

    def _take(self, metadata: Any) -> None:
        self._trace = metadata

    def _after_run(self, *_: Any) -> None:
        if self._trace is None:  # a step without a call of the session
            return
        assert self._folder is not None
        metadata, self._trace = self._trace, None
        if self._dumps["metadata"]:
            (self._folder / f"runmetadata-{self.global_step}.pb").write_bytes(metadata.SerializeToString())
        if self._dumps["tracing"]:
            trace = _Timeline(metadata.step_stats).generate_chrome_trace_format(show_dataflow=True, show_memory=True)
            (self._folder / f"chrome-trace-{self.global_step}.json").write_text(trace)
        if self._events is not None:
            self._events.add_run_metadata(metadata, f"step-{self.global_step}", self.global_step)
            self._events.flush()

    def _after_train(self) -> None:
        if self._events is not None:
            self._events.close()


class StartProcOrThread(Callback):
    """Starts processes or threads before the training, and stops them after it.

    Args:
        startable: an object with ``start()``, or several.
        stop_at_last: stop them after the training: by ``stop()`` or ``terminate()``, and ``join()``.
    """

    chief_only = False
    """Every process of a distributed training needs what it reads from them."""

    def __init__(self, startable: Any, stop_at_last: bool = True) -> None:
        self._startables = list(startable) if isinstance(startable, list | tuple) else [startable]
        self._stop_at_last = stop_at_last
        self._started: list[Any] = []

    def _before_train(self) -> None:
        for each in self._startables:
            each.start()
            self._started.append(each)

    def _after_train(self) -> None:
        started, self._started = self._started, []
        for each in started if self._stop_at_last else ():
            stop = getattr(each, "stop", None) or getattr(each, "terminate", None)
            if stop is None:
                logger.warning("%s has neither `stop` nor `terminate`: it goes on.", each)
                continue
            stop()
            each.join(5.0)


def _pixels(value: Any, scale: float, name: str) -> np.ndarray:
    """Return an image as (H, W) or (H, W, C) uint8."""
    array = np.asarray(value)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise DataError(
            "An image is of shape (H, W), (H, W, 1) or (H, W, 3).",
            received=f"`{name}` of shape {array.shape}",
            advice="Make one of it by `map_func`.",
        )
    if not is_finite(array):
        array = np.nan_to_num(array)
    return np.clip(array * scale, 0, 255).astype(np.uint8)
