"""Input source of ``tf.data`` datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.dataflow.base import DataFlow
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.errors import ConfigurationError
from ziggurat.tf.inputs.base import InputSource, steps_taken
from ziggurat.tf.inputs.flow_datasets import dataset_of, flow_error_behind
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.inputs.tensors import checked_tensors

__all__ = ["TFDatasetInput"]


class TFDatasetInput(InputSource):
    """Reads a ``tf.data.Dataset`` inside of the graph, or a data flow.

    A dataset that comes to an end ends the training, with a reason that says so: repeat it. A resumed training passes
    over the elements that were trained, which is exact where the dataset gives the same elements each time: give its
    shuffles a seed. A data flow is repeated without end, prepared ahead as by ``QueueInput``, and resumed exactly.

    Args:
        dataset: a dataset of either API of TensorFlow whose elements are batches: a tuple with one component an input,
            or a mapping by the names of the inputs; or a data flow.

    Raises:
        ConfigurationError: where it is neither; in ``get_input_tensors``, where a type or a shape is not that of the
            input.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        if not isinstance(dataset, tf2.data.Dataset | DataFlow):
            raise ConfigurationError(
                "`TFDatasetInput` takes a `tf.data.Dataset` or a data flow.",
                received=type(dataset).__name__,
                advice="For other iterables use `QueueInput`.",
            )
        self.dataset = dataset
        self._queue = QueueInput(dataset) if isinstance(dataset, DataFlow) else None
        self._iterator: Any = None
        self._passed_over: Any = None
        self._taken: list[Any] = []
        self._session: Any = None

    @staticmethod
    def dataflow_to_dataset(df: DataFlow, types: Sequence[Any]) -> Any:
        """Return a dataset of the datapoints of a data flow, to be processed further by ``tf.data``.

        Each iteration of it is the next pass of the flow. Its components have unknown shapes: ``set_shape`` or
        ``ensure_shape`` in a ``map`` gives them some. Where it is an input, an error of the flow ends the training as
        that error.

        Args:
            df: a flow of lists or tuples.
            types: the ``tf.DType`` of each component.
        """
        return dataset_of(df, types=types)

    def error_behind(self, error: BaseException) -> BaseException | None:
        """Return the error of a data flow inside of the dataset; None where it is none."""
        return flow_error_behind(error)

    def batches(self) -> Iterable[Any]:
        """Return what the loop takes its batches from."""
        return super().batches() if self._queue is None else self._queue.batches()

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed; the iterator begins behind the batches that were trained."""
        if self._queue is not None:
            return self._queue.connect(batches, session)
        self._session = session
        self._begin(session, steps_taken(batches) * self.tower_count)
        return super().connect(batches, session)

    def reset_state(self) -> None:
        """Begin the dataset again, in the session of the training or the default one."""
        session = self._session or tf.get_default_session()
        if self._iterator is not None and session is not None:
            self._begin(session, 0)

    def _setup(self, input_signature: Sequence[Any]) -> None:
        if self._queue is not None:
            self._queue.setup(input_signature)
            self.fed = self._queue.fed
            return
        with self.cached_name_scope(), tf.device("/cpu:0"):
            self._passed_over = tf.placeholder_with_default(tf.zeros((), tf.int64), (), name="passed_over")
            self._iterator = tf.data.make_initializable_iterator(self.dataset.skip(self._passed_over))

    def _get_callbacks(self) -> list[Any]:
        return [] if self._queue is None else self._queue.get_callbacks()

    def _get_input_tensors(self) -> list[Any]:
        if self._queue is not None:
            return self._queue.get_input_tensors()
        with self.cached_name_scope(), tf.device("/cpu:0"):
            with tf.control_dependencies(self._taken):  # a step gives its first element to the first tower
                element = self._iterator.get_next()
            self._taken = [tf2.nest.flatten(element)[0].op]
            parts = element if isinstance(element, Mapping) else tf2.nest.flatten(element)
            return checked_tensors("an element of the dataset", parts, self.signature)

    def _size(self) -> int:
        return super()._size() if self._queue is None else self._queue.size()

    def _begin(self, session: Any, elements: int) -> None:
        session.run(self._iterator.initializer, {self._passed_over: elements})
