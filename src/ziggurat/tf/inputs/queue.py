"""Input sources that prepare batches ahead in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ziggurat.dataflow.base import DataFlow, UnknownLengthError
from ziggurat.dataflow.remote import RemoteDataZMQ
from ziggurat.dataflow.sources import DataFromIterable
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.dataflow.stages.repeating import RepeatedData
from ziggurat.engine.callback import Callback
from ziggurat.engine.feed import BatchCycle, Feed, QueueFeed
from ziggurat.errors import ConfigurationError, StateError
from ziggurat.tf.inputs.base import FlowInput
from ziggurat.tf.inputs.flow_datasets import dataset_of

__all__ = ["BatchQueueInput", "QueueInput", "QueueSize", "ZMQInput"]

_CAPACITY: Final = 50
_DATAPOINTS: Final = 3000
_MAX_BYTES: Final = 1 << 30
_DECAY: Final = 0.5
_RECEIVED: Final = 10


class QueueInput(FlowInput):
    """Lets a thread prepare batches while the steps before them run.

    The queue is bounded in number and in bytes. An error of the data flow ends the training with that error, behind the
    batches before it. A resumed training goes on behind the batch that was trained last: what waits is prepared again.

    ``QueueInput/queue_size`` is put after each epoch, a moving average of the batches that waited (decay 0.5): near the
    capacity the data is fast enough, near 0 it is what limits the training.

    Args:
        ds: the batches: a data flow, or any iterable that can be iterated again.
        queue: a ``tf.queue.FIFOQueue`` for the number of batches that wait at most, or that number; 50 where it is
            None. The batches wait in Python's memory, so that the position of each is known.
        max_bytes: bytes that the waiting batches take at most; a single batch may take more.

    Raises:
        ConfigurationError: where a bound is below 1.
    """

    def __init__(self, ds: Iterable[Any], queue: Any = None, *, max_bytes: int = _MAX_BYTES) -> None:
        super().__init__(ds)
        self.capacity = _CAPACITY if queue is None else capacity_of(queue)
        """Batches that wait at most."""
        self.max_bytes = max_bytes
        """Bytes of them at most."""
        if min(self.capacity, self.max_bytes) < 1:
            raise ConfigurationError(
                "A queue holds at least one batch of at least one byte.",
                received=f"{self.capacity} batches, {self.max_bytes} bytes",
                advice="Make the bounds larger.",
            )
        self._feed: QueueFeed | None = None
        self.outer_feed: QueueFeed | None = None
        """The feed of a ``StagingInput`` that takes the batches, where there is one."""

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed: a thread and its bounded queue."""
        self._feed = QueueFeed(batches, self.capacity, self.max_bytes)
        return self._feed

    def queue_size(self) -> int:
        """Return the batches that wait now; 0 before the training."""
        return 0 if self._feed is None else self._feed.ready

    def refill_queue(self) -> None:
        """Throw away what waits and prepare it again, after the data flow was changed. No batch is lost.

        Call it between two steps, in the thread that trains. It waits for the batch that is being prepared.

        Raises:
            StateError: before the training.
        """
        feed = self.outer_feed or self._feed
        if feed is None:
            raise StateError(
                "A queue is filled once the training begins.",
                received="`refill_queue` before it",
                advice="Call it in a callback.",
            )
        feed.refill()

    def _get_callbacks(self) -> list[Any]:
        return [QueueSize(self)]


class BatchQueueInput(QueueInput):
    """Prepares datapoints ahead and makes batches of them; a batch may span two passes of the flow.

    Args:
        ds: single datapoints, of one shape.
        batch_size: datapoints in a batch.
        queue: a ``tf.queue.FIFOQueue`` for the number of datapoints that wait at most, or that number; 3,000 where it
            is None.
        max_bytes: bytes that the waiting batches take at most.

    Raises:
        ConfigurationError: where a bound is below 1.
    """

    def __init__(self, ds: Iterable[Any], batch_size: int, queue: Any = None, *, max_bytes: int = _MAX_BYTES) -> None:
        flow = ds if isinstance(ds, DataFlow) else DataFromIterable(ds)
        datapoints = _DATAPOINTS if queue is None else capacity_of(queue)
        batches = BatchData(RepeatedData(flow, -1), batch_size)
        if flow._ziggurat_life.seed is not None:  # a flow is seeded at its last stage, which is this one now
            batches.seed(flow._ziggurat_life.seed)
        capacity = max(1, datapoints // batch_size) if datapoints > 0 else datapoints
        super().__init__(batches, capacity, max_bytes=max_bytes)
        self.batch_size = batch_size
        self._flow = flow

    def _size(self) -> int:
        try:
            return len(self._flow) // self.batch_size
        except (TypeError, NotImplementedError) as error:
            raise UnknownLengthError(self) from error


class ZMQInput(QueueInput):
    """Receives batches from other processes and machines, which run ``send_dataflow_zmq``.

    It goes on with what comes after a resume: the senders do not know which batches were trained. A sender that fails,
    or is gone, ends the training with an error that says so.

    Args:
        end_point: such as ``tcp://0.0.0.0:5555``.
        hwm: batches of each sender that wait in this process at most; then the senders wait.
        bind: wait for senders there; otherwise go to them.
        options: ``key=…``, ``timeout_s=…`` and ``senders=…`` of ``RemoteDataZMQ``.
    """

    def __init__(self, end_point: str, hwm: int = 50, bind: bool = True, **options: Any) -> None:
        self.receiver = RemoteDataZMQ(end_point, hwm=hwm, bind=bind, **options)
        """The data flow; its ``open()`` returns the address, with the port that was chosen for a ``*``."""
        super().__init__(self.receiver, min(hwm or _RECEIVED, _RECEIVED))

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed: a thread that receives, and its bounded queue."""
        self._feed = _ReceivingFeed(self.receiver, batches, self.capacity, self.max_bytes)
        return self._feed

    def to_dataset(self, input_signature: Sequence[Any]) -> Any:
        """Return a ``tf.data.Dataset`` of what is received, to be processed further.

        Args:
            input_signature: a ``tf.TensorSpec`` for each component.
        """
        return dataset_of(self.receiver, signature=tuple(input_signature))


class _ReceivingFeed(QueueFeed):
    """A queue whose thread may wait for messages that never come."""

    def __init__(self, receiver: RemoteDataZMQ, batches: BatchCycle, capacity: int, max_bytes: int) -> None:
        super().__init__(batches, capacity, max_bytes)
        self._receiver = receiver

    def close(self) -> None:
        self._receiver.stop_waiting()
        super().close()


class QueueSize(Callback):
    """Puts a moving average of the batches that wait in a queue, after each epoch, as ``QueueInput/queue_size``.

    Args:
        source: the source; its class names the curve.
    """

    def __init__(self, source: QueueInput) -> None:
        self._source = source
        self._average: float | None = None

    def trigger_step(self) -> None:
        """Look at the queue."""
        size = self._source.queue_size()
        self._average = size if self._average is None else _DECAY * self._average + (1 - _DECAY) * size

    def trigger(self) -> None:
        """Put the average."""
        if self._average is not None:
            self.trainer.put(f"{type(self._source).__name__}/queue_size", self._average)


def capacity_of(queue: Any) -> int:
    """Return how many elements a queue of TensorFlow holds, or the number itself."""
    if isinstance(queue, int):
        return queue
    try:
        return int(queue.queue_ref.op.get_attr("capacity"))
    except (AttributeError, ValueError) as error:
        raise ConfigurationError(
            "`queue` is a `tf.queue.FIFOQueue` or a number.",
            received=type(queue).__name__,
            advice="Give the number of elements that wait at most.",
        ) from error
