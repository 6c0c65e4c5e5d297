"""Conversions between flows and ``tf.data``.

TensorFlow replaces an error of the flow by one of its own (``tf.errors.UnknownError`` and the like), whose text has
the type and the message of the flow's error. An error never ends a dataset silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint, UnknownLengthError
from ziggurat.dataflow.sources import DataFromIterable, as_datapoint
from ziggurat.errors import DataError, MissingDependencyError, UsageError

__all__ = ["dataflow_to_dataset", "from_tf_dataset", "to_tf_dataset"]


def to_tf_dataset(df: DataFlow, output_signature: Any = None) -> Any:
    """Return a ``tf.data.Dataset`` of the datapoints of ``df``: tuples of tensors, or dicts.

    Args:
        df: the flow. Each iteration of the dataset is its next pass.
        output_signature: the ``tf.TensorSpec`` of each component, in a tuple or a dict. Where None, the first datapoint
            tells the types and the numbers of dimensions; all sizes are then unknown.

    Raises:
        MissingDependencyError: where TensorFlow is not installed.
        DataError: where the flow has no datapoints to tell the signature.
    """
    tf = _require_tensorflow()
    if output_signature is None:
        output_signature = _structure(_first_datapoint(df), lambda value: _spec(tf, value))
    return tf.data.Dataset.from_generator(_generator(df), output_signature=output_signature)


def dataflow_to_dataset(df: DataFlow, types: Sequence[Any]) -> Any:
    """Return a ``tf.data.Dataset`` of the datapoints of ``df``, with components of unknown shape.

    Args:
        df: a flow of lists or tuples. Each iteration of the dataset is its next pass.
        types: ``tf.DType`` (or NumPy's) of each component.

    Raises:
        MissingDependencyError: where TensorFlow is not installed.
    """
    tf = _require_tensorflow()
    signature = tuple(tf.TensorSpec(None, tf.as_dtype(dtype)) for dtype in types)
    return tf.data.Dataset.from_generator(_generator(df), output_signature=signature)


def from_tf_dataset(dataset: Any) -> DataFlow:
    """Return a flow of the elements of a ``tf.data.Dataset``: lists of arrays, or dicts; text is bytes.

    It is resumed by iterating the dataset again, so this one must give the same elements each time.

    Raises:
        UsageError: where eager execution is off; the dataset can then be iterated in a session only.
    """
    if not _require_tensorflow().executing_eagerly():
        raise UsageError(
            "Eager execution is off, and a `tf.data.Dataset` becomes a flow only where it is on.",
            advice="Make the flow in another process, or use the dataset itself as the input source.",
        )
    return _FromTensorFlow(dataset)


class _FromTensorFlow(DataFromIterable):
    def __len__(self) -> int:
        length = int(self.iterable.cardinality())  # pyright: ignore[reportAttributeAccessIssue]
        if length < 0:
            raise UnknownLengthError(self)
        return length

    def iterate(self) -> Iterator[Datapoint]:
        for item in self.iterable.as_numpy_iterator():  # pyright: ignore[reportAttributeAccessIssue]
            yield as_datapoint(item)


def _generator(df: DataFlow) -> Callable[[], Iterator[Any]]:
    def generate() -> Iterator[Any]:
        for point in df:
            yield _structure(point, lambda value: value)

    return generate


def _structure(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a datapoint as TensorFlow takes it: dicts stay, lists and tuples of components become tuples."""
    if isinstance(value, dict):
        return {key: _inner(item, leaf) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_inner(item, leaf) for item in value)
    return leaf(value)


def _inner(value: Any, leaf: Callable[[Any], Any]) -> Any:
    return {key: _inner(item, leaf) for key, item in value.items()} if isinstance(value, dict) else leaf(value)


def _spec(tf: ModuleType, value: Any) -> Any:
    if isinstance(value, float):
        return tf.TensorSpec((), tf.float32)  # as batches of Python's numbers have it
    array = np.asarray(value)
    dtype = tf.string if array.dtype.kind in "USO" else tf.as_dtype(array.dtype)
    return tf.TensorSpec([None] * array.ndim, dtype)


def _first_datapoint(df: DataFlow) -> Datapoint:
    """Return the first datapoint of the next pass, and let that pass begin anew."""
    df.reset_state()
    state = df._ziggurat_state()
    items = iter(df)
    try:
        return next(items)
    except StopIteration:
        raise DataError(
            "The flow has no datapoints, so the signature of a `tf.data.Dataset` is not known.",
            advice="Give `output_signature`.",
        ) from None
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
        df._ziggurat_load_state(state)


def _require_tensorflow() -> ModuleType:
    try:
        import tensorflow as tf
    except ImportError as error:
        raise MissingDependencyError("tensorflow", extra="tensorflow", purpose="datasets of TensorFlow") from error
    return tf
