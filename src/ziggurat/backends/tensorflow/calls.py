"""Calls into a session: prepared once for their feeds and fetches, values kept in the graph, and explained errors."""

from __future__ import annotations

import importlib
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.network_files import line_in_words
from ziggurat.errors import ConfigurationError, NetworkCodeError, TrainingError, ZigguratError

__all__ = [
    "Placeholder",
    "StepRecorder",
    "ThreadChoice",
    "explained",
    "is_number",
    "prepared_call",
]

# TensorFlow exports the class nowhere but beside this one.
_CALLABLE_OPTIONS: Final = importlib.import_module(tf.ConfigProto.__module__).CallableOptions

_CALLING_THREAD: Final = -1


@dataclass(frozen=True)
class Placeholder:
    """Placeholder of a batch component, with what an array must be to be fed to it.

    Args:
        noun: what one row is, for errors: ``sample``, ``label``.
        tensor: the placeholder.
        dtype: its dtype.
        row_shape: shape of one row.
    """

    noun: str
    tensor: Any
    dtype: np.dtype[Any]
    row_shape: tuple[int | None, ...]

    @classmethod
    def of(cls, noun: str, tensor: Any) -> Placeholder:
        """Return the feed of a placeholder whose first axis counts the rows."""
        return cls(noun, tensor, np.dtype(tensor.dtype.as_numpy_dtype), tuple(tensor.shape.as_list()[1:]))

    def array(self, part: Any) -> np.ndarray:
        """Return a component of a batch as a prepared call takes it: nothing behind this looks at it again.

        Raises:
            ConfigurationError: where its rows are of another shape, or its values do not convert to the dtype.
        """
        try:
            array = np.asarray(part, self.dtype)
        except (ValueError, TypeError) as error:
            raise ConfigurationError(
                f"A {self.noun} of this network is of type {self.dtype}.",
                received=f"{type(part).__name__} of {getattr(part, 'dtype', 'mixed values')} ({error})",
                advice="Give it numbers.",
            ) from error
        shape = array.shape
        # The equality is the whole check of nearly every batch; the rest is for open dimensions and for the error.
        if not shape or (shape[1:] != self.row_shape and not self._allows(shape[1:])):
            raise ConfigurationError(
                f"A {self.noun} of this network has shape {self.row_shape}.",
                received=str(shape[1:]) if shape else "a single number, without an axis of rows",
                advice="Give it data of the size it was made for, or set the crop.",
            )
        return array

    def _allows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.row_shape) and all(
            wanted is None or wanted == size for wanted, size in zip(self.row_shape, shape, strict=True)
        )


def prepared_call(
    session: Any,
    feeds: Sequence[Any],
    fetches: Sequence[Any],
    targets: Sequence[Any] = (),
    *,
    in_own_thread: bool = False,
    time_limit_ms: int = 0,
    trace: Callable[[Any], object] | None = None,
) -> Callable[..., Sequence[Any]]:
    """Return a function from one array a feed to one value a fetch.

    ``session.run`` and ``session.make_callable`` go through some hundred microseconds of Python with each call; this
    does not. So the arrays must be of the placeholders' dtypes and shapes.

    Args:
        session: its graph is not changed any more.
        feeds: placeholders.
        fetches: tensors; one may be there several times, and may be a feed.
        targets: operations that are run, too.
        in_own_thread: run one operation after the other in the calling thread, without the session's pool of threads.
            Single operations still use several threads.
        time_limit_ms: a call that takes longer fails with ``tf.errors.DeadlineExceededError``; 0 for no limit.
        trace: takes the ``tf.RunMetadata`` of each call, with the times of all operations; None for no tracing.
    """
    fed = [feed.name for feed in feeds]
    names = [fetch.name for fetch in fetches]
    fetched = list(dict.fromkeys(name for name in names if name not in fed))
    options = _CALLABLE_OPTIONS(feed=fed, fetch=fetched, target=[target.name for target in targets])
    if in_own_thread:
        options.run_options.inter_op_thread_pool = _CALLING_THREAD
    options.run_options.timeout_in_ms = time_limit_ms
    if trace is not None:
        options.run_options.trace_level = tf.RunOptions.FULL_TRACE
    call: Callable[..., Any] = session._make_callable_from_options(options)
    if trace is not None:
        call = _traced(call, trace)
    if fetched == names:
        return call
    places = {name: place for place, name in enumerate([*fetched, *fed])}
    order = [places[name] for name in names]

    def call_in_order(*arrays: Any) -> list[Any]:
        values = [*call(*arrays), *arrays]
        return [values[place] for place in order]

    return call_in_order


def _traced(call: Callable[..., Any], trace: Callable[[Any], object]) -> Callable[..., Any]:
    def traced_call(*arrays: Any) -> Any:
        metadata = tf.RunMetadata()
        values = call(*arrays, run_metadata=metadata)
        trace(metadata)
        return values

    return traced_call


_SMALL_STEP_S: Final = 0.001
"""Below this, handing operations to other threads and back costs more than their running side by side saves."""

_TRIAL_STEPS: Final = 16


class ThreadChoice:
    """Lets the thread that trains do small steps by itself, once the first ones have shown that they are small.

    The order of operations does not show in their results, so neither does when this happens.

    Args:
        is_open: whether there is something to choose.
    """

    def __init__(self, is_open: bool) -> None:
        self.trials_left = _TRIAL_STEPS if is_open else 0
        """Steps to measure."""
        self.in_own_thread = False
        """Whether steps are done in the thread that asks for them."""
        self._shortest_s = _SMALL_STEP_S

    def has_changed(self, took_s: float) -> bool:
        """Take the time of a step; return whether steps are done in the own thread from now on."""
        self.trials_left -= 1
        self._shortest_s = min(self._shortest_s, took_s)
        self.in_own_thread = not self.trials_left and self._shortest_s < _SMALL_STEP_S
        return self.in_own_thread


_ROWS: Final = 512
"""Steps that the graph holds; then one call fetches them all."""

_SCOPE: Final = "ziggurat/recorder"
_FAILED: Final = "A watched value is not finite"


class StepRecorder:
    """Operations that keep values of training steps, and the values that were fetched.

    The graph must not be final. The variables belong to no collection: nothing saves or restores them.

    Args:
        values: name → tensor of one number.
        watched: names to look at for NaN and infinity.
        train_op: one step on a whole batch.
    """

    def __init__(self, values: Mapping[str, Any], watched: Sequence[str], train_op: Any) -> None:
        self.names = tuple(values)
        self.watched = tuple(name for name in values if name in watched)
        # Of 32 bits where nothing is lost by it: that saves an operation a value.
        dtype = tf.float32 if all(value.dtype == tf.float32 for value in values.values()) else tf.float64
        # On the processor: it is where the numbers are read.
        with tf.variable_scope(_SCOPE, reuse=False), tf.device("/cpu:0"):
            rows = _variable("rows", (_ROWS, len(values)), dtype)
            written = _variable("written", (), tf.int64)
            self._rows, self._written = rows, written
            self.operations, self.checked_operations = self.recording(values, train_op)
            """One step that is recorded; and one that fails besides where a watched value is not finite."""
            self._reading = [rows.read_value(), written.read_value()]
            self.initializer: Any = tf.group(rows.initializer, written.initializer)
        self._read: Any = None
        self._fetched: list[np.ndarray] = []
        self._seen = 0
        self._pending = 0

    def recording(self, values: Mapping[str, Any], train_op: Any) -> tuple[list[Any], list[Any]]:
        """Return the operations of a step that is recorded, and of one that fails besides where a value is not finite.

        Args:
            values: name → tensor of one number, for the names of this recorder.
            train_op: one step on a whole batch.
        """
        with tf.device("/cpu:0"):
            numbers = {name: tf.cast(values[name], self._rows.dtype.base_dtype) for name in self.names}
            row = tf.stack(list(numbers.values()))
            place = tf.math.floormod(self._written.read_value(), _ROWS)
            write = tf.raw_ops.ResourceScatterUpdate(resource=self._rows.handle, indices=place, updates=row)
            with tf.control_dependencies([write]):
                count = self._written.assign_add(1, read_value=False)
            operations = [train_op, count]
            # Behind the step and the row: what fails here is complete.
            with tf.control_dependencies(operations):
                checks = [tf.raw_ops.CheckNumerics(tensor=numbers[name], message=_FAILED) for name in self.watched]
            return operations, [check.op for check in checks]

    def open(self, session: Any) -> None:
        """Use a session whose graph is final."""
        self._read = prepared_call(session, [], self._reading, in_own_thread=True)

    def count_step(self) -> None:
        """Take note of a step; fetch the rows before the next one writes over them."""
        self._pending += 1
        if self._pending == _ROWS:
            self._fetch()

    def take(self) -> dict[str, np.ndarray]:
        """Return name → values of the steps since the last call."""
        self._fetch()
        rows = np.concatenate([np.empty((0, len(self.names))), *self._fetched])  # of 64 bits
        self._fetched.clear()
        return {name: rows[:, place] for place, name in enumerate(self.names)}

    def non_finite(self, error: Any) -> str | None:
        """Return the first watched value that is NaN or infinite in the newest row; None where all are finite.

        Args:
            error: a ``tf.errors.OpError`` of the step; any but that of the check means that nothing is known of values.
        """
        if _FAILED not in str(error.message):
            return None
        self._fetch()
        if not self._fetched:
            return None
        newest = dict(zip(self.names, self._fetched[-1][-1].tolist(), strict=True))
        return next((name for name in self.watched if not np.isfinite(newest[name])), None)

    def _fetch(self) -> None:
        rows, written = self._read()
        places = np.arange(self._seen, int(written)) % _ROWS
        if len(places):
            self._fetched.append(rows[places])
        self._seen, self._pending = int(written), 0


def is_number(tensor: Any) -> bool:
    """Return whether a tensor is one number, as far as the graph can say, that a 64-bit float holds."""
    return tensor.shape.rank == 0 and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool)


def _variable(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    return tf.get_variable(
        name, shape, dtype, tf.zeros_initializer(), trainable=False, collections=[], use_resource=True
    )


_TOO_LARGE: Final = "Cannot parse tensor from proto"
"""What TensorFlow says of a constant that it cannot allocate; a graph made by Python has no damaged ones."""

_ASKED: Final = re.compile(r"allocating tensor with shape\[([\d,]*)\] and type (\w+)")
_WIDTHS: Final = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "uint8": 1, "bool": 1}
"""Type, as TensorFlow's messages name it → bytes of a number."""

_NODE: Final = re.compile(r"\{\{\{?node ([^\s}]+)\}")

_CHANNELS_LAST_ONLY: Final = (
    "On older processors these layers take channels last only: write data_format='NHWC', "
    "or set TF_ENABLE_ONEDNN_OPTS=1."
)

_MEMORY: Final = {
    "step": (
        "The step must fit in the device's memory: it is out of memory.",
        "Make `batch_size` or the network smaller, or set `gradient_accumulation_steps` to train a batch in parts.",
    ),
    "start": (
        "The network's variables must fit in the device's memory: it is out of memory.",
        "Make the network smaller: fewer or narrower layers.",
    ),
}


def explained(error: Any, path: str, graph: Any = None, *, doing: Literal["step", "start"] = "step") -> ZigguratError:
    """Return the error to raise for one of TensorFlow's.

    Args:
        error: a ``tf.errors.OpError``.
        path: the network file.
        graph: finds the operation of an error that only names it, as those of prepared calls do.
        doing: what failed: a step, or giving the variables their first values.
    """
    # TensorFlow may tell first where the operation was made, up to a line "Node: 'name'".
    text = re.split(r"\nNode: '[^']*'\n", str(error.message or ""))[-1].strip()
    first = text.splitlines()[0] if text else type(error).__name__
    line = _users_line(error.op or _named_operation(text, graph), path)
    where = f"{path}, line {line}" if line else path
    if isinstance(error, tf.errors.ResourceExhaustedError) or first.startswith(_TOO_LARGE):
        rule, advice = _MEMORY[doing]
        return TrainingError(
            rule,
            received=f"{where}: {first}",
            advice=advice,
            details={"file": path, "line": line, "error_type": type(error).__name__, **_asked_memory(first)},
        )
    source = linecache.getline(path, line).strip() if line else ""
    what = f"The network failed while it ran: {first.rstrip('.')}."
    return NetworkCodeError(
        f"{line_in_words(path, line, source)}: {what}",
        advice=_CHANNELS_LAST_ONLY if "only supports NHWC" in first else "",
        details={"file": path, "line": line, "source": source, "what": what, "error_type": type(error).__name__},
    )


def _asked_memory(message: str) -> dict[str, Any]:
    """Return ``asked_bytes`` and ``is_gpu`` of a tensor that found no place; empty where the message tells no size."""
    found = _ASKED.search(message)
    width = _WIDTHS.get(found.group(2)) if found is not None else None
    if found is None or width is None:
        return {}
    sizes = [int(size) for size in found.group(1).split(",") if size.strip()]
    return {"asked_bytes": math.prod(sizes) * width, "is_gpu": "GPU:" in message}


def _named_operation(text: str, graph: Any) -> Any:
    """Return the operation of ``graph`` that a message names; None where it names none of its own."""
    found = _NODE.search(text)
    try:
        return None if found is None or graph is None else graph.get_operation_by_name(found.group(1))
    except (KeyError, ValueError):  # made by the runtime, or a name of a port
        return None


def _users_line(operation: Any, path: str) -> int | None:
    """Return the newest line of the user's file that made the operation, or the one whose gradient it is."""
    while operation is not None:
        lines = [frame.lineno for frame in operation.traceback or () if frame.filename == path]
        if lines:
            return lines[-1]
        operation = getattr(operation, "_original_op", None)
    return None
