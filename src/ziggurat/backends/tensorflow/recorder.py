"""Values of training steps, kept in the graph: a step writes a row of numbers, and fetches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["StepRecorder", "is_number"]

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
            numbers = {name: tf.cast(value, dtype) for name, value in values.items()}
            row = tf.stack(list(numbers.values()))
            place = tf.math.floormod(written.read_value(), _ROWS)
            write = tf.raw_ops.ResourceScatterUpdate(resource=rows.handle, indices=place, updates=row)
            with tf.control_dependencies([write]):
                count = written.assign_add(1, read_value=False)
            self.operations = [train_op, count]
            """One step that is recorded."""
            # Behind the step and the row: what fails here is complete.
            with tf.control_dependencies(self.operations):
                checks = [tf.raw_ops.CheckNumerics(tensor=numbers[name], message=_FAILED) for name in self.watched]
            self.checked_operations = [check.op for check in checks]
            """One step that is recorded, and fails where a watched value is not finite."""
            self._reading = [rows.read_value(), written.read_value()]
            self.initializer: Any = tf.group(rows.initializer, written.initializer)
        self._read: Any = None
        self._fetched: list[np.ndarray] = []
        self._seen = 0
        self._pending = 0

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

    def is_check(self, error: Any) -> bool:
        """Return whether an error is that of the check."""
        return _FAILED in str(error.message)

    def non_finite(self) -> str | None:
        """Return the first watched value that is NaN or infinite in the newest row; None where all are finite."""
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
