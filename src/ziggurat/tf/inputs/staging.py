"""Input source that copies batches to the device while the steps before them run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import Callback
from ziggurat.engine.feed import BatchCycle, Feed, QueueFeed
from ziggurat.engine.interruption import BreakOff
from ziggurat.errors import ConfigurationError
from ziggurat.tf.inputs.base import InputSource, reason_of_end
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.sessions import device_name

__all__ = ["StagingInput", "staged_for"]


class StagingInput(InputSource):
    """Copies the batches of another source to the device, some steps ahead.

    A thread puts batches into a staging area on the device of each tower. A step reads the oldest one, and lets go of
    it at its end: whatever else is evaluated between two steps sees the same batch and takes nothing away. A resumed
    training goes on behind the batch that was trained last.

    Args:
        input: the other source.
        nr_stage: batches of each tower that lie on its device besides the one that is trained.
        device: where they lie; on the device of the tower where it is None.

    Raises:
        ConfigurationError: where ``nr_stage`` is below 1, or the source is a ``StagingInput``.
    """

    def __init__(self, input: InputSource, nr_stage: int = 1, device: str | None = None) -> None:  # noqa: A002
        super().__init__()
        if isinstance(input, StagingInput):
            raise ConfigurationError(
                "A `StagingInput` stages a source that is none.",
                received="a StagingInput",
                advice="Give the inner one a larger `nr_stage`.",
            )
        if nr_stage < 1:
            raise ConfigurationError("`nr_stage` is at least 1.", received=nr_stage, advice="1 is usual.")
        self.input = input
        self.nr_stage = nr_stage
        self._device = device
        self._areas: list[_Area] = []
        self._feed: _StagingFeed | None = None
        self.trainer: Any = None
        """The trainer; there once it trains."""

    def error_behind(self, error: BaseException) -> BaseException | None:
        """Return what the other source finds."""
        return self.input.error_behind(error)

    def batches(self) -> Iterable[Any]:
        """Return the batches of the other source."""
        return self.input.batches()

    def connect(self, batches: BatchCycle, session: Any) -> Feed:
        """Return the feed: a thread that stages."""
        self._feed = _StagingFeed(self, batches, session)
        if isinstance(self.input, QueueInput):
            self.input.outer_feed = self._feed
        return self._feed

    def step_operations(self) -> Sequence[Any]:
        """Return the operations that let go of the batch of a step."""
        return [*(area.release for area in self._areas), *self.input.step_operations()]

    def reset_state(self) -> None:
        """Begin the data of the other source again."""
        self.input.reset_state()

    def begin(self) -> None:
        """Let the staging begin before the first step asks for its batch."""
        if self._feed is not None:
            self._feed.begin()

    def put_operations(self) -> list[Any]:
        """Return the operations that stage one batch for each tower."""
        return [area.put for area in self._areas]

    def clear_operations(self) -> list[Any]:
        """Return the operations that empty the staging areas."""
        return [area.clear for area in self._areas]

    def _setup(self, input_signature: Sequence[Any]) -> None:
        self.input.setup(input_signature)

    def _get_callbacks(self) -> list[Any]:
        return [*self.input.get_callbacks(), _StagingStart(self)]

    def _size(self) -> int:
        return self.input.size()

    def _get_input_tensors(self) -> list[Any]:
        tensors = self.input.get_input_tensors()
        is_text = any(tensor.dtype.base_dtype == tf.string for tensor in tensors)  # which no GPU holds
        device = "/cpu:0" if is_text else self._device or tf.no_op().device or device_name(0)
        with self.cached_name_scope(), tf.device(device):
            area = _Area(tensors)
        self._areas.append(area)
        return area.tensors


def staged_for(source: InputSource, devices: Sequence[str]) -> InputSource:
    """Return a source that stages where there are several GPUs and the batches wait in a queue; else the source itself.

    Args:
        source: the source of a training.
        devices: the device of each tower.
    """
    several = sum("gpu" in device.lower() for device in devices) > 1
    return StagingInput(source) if several and isinstance(source, QueueInput) else source


class _Area:
    """The staging area of one tower.

    Args:
        tensors: one an input, from the other source.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        dtypes = [tensor.dtype.base_dtype for tensor in tensors]
        shared = {"shared_name": tf.get_default_graph().unique_name("area", mark_as_used=True)}
        self.put = tf.raw_ops.Stage(values=tensors, **shared)
        # Peeked at and not taken: a second call within a step, or one beside it, must not wait for another batch.
        self.tensors: list[Any] = tf.raw_ops.StagePeek(index=0, dtypes=dtypes, **shared)
        with tf.control_dependencies([self.tensors[0].op]):
            taken = tf.raw_ops.Unstage(dtypes=dtypes, **shared)
        self.release = taken[0].op
        self.clear = tf.raw_ops.StageClear(dtypes=dtypes, **shared)
        for staged, tensor in zip(self.tensors, tensors, strict=True):
            staged.set_shape(tensor.shape)


class _StagingFeed(QueueFeed):
    """A queue whose batches wait on the device; the steps are fed nothing.

    Args:
        source: whose areas are filled.
        batches: the batches of the other source, at the position where the feed begins.
        session: the open session.
    """

    def __init__(self, source: StagingInput, batches: BatchCycle, session: Any) -> None:
        super().__init__(batches, source.nr_stage)
        self._source = source
        self._session = session
        self._inner: Feed | None = None

    def begin(self) -> None:
        """Start the thread where it does not run."""
        if self._thread is None:
            self._start()

    def next(self) -> Any:
        """Wait until a batch is staged; what the other source raised is raised here, behind the batches before it."""
        try:
            return super().next()
        except tf.errors.OutOfRangeError as error:
            self._source.trainer.end_of_input(reason_of_end(error))
            raise BreakOff from error
        except tf.errors.OpError as error:
            cause = self._source.error_behind(error)
            if cause is None:
                raise
            raise cause from error

    def _end(self, wait_s: float | None) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        if isinstance(self._inner, QueueFeed):  # the thread may wait for its next batch
            self._inner._end(wait_s)
        super()._end(wait_s)

    def _free(self) -> None:
        if not isinstance(self._inner, QueueFeed):  # which frees it, unless its own thread hangs in it
            super()._free()

    def _fill(self) -> None:
        """Stage batches until the feed is closed."""
        try:
            source, session = self._source, self._session
            session.run(source.clear_operations())
            inner = self._inner = source.input.connect(self._batches, session)
            put = prepared_call(session, source.input.fed, [], source.put_operations())
            while not self._is_ended:
                batch = inner.next()
                position = inner.position()
                with self._changed:
                    while self._is_full(0) and not self._is_ended:
                        self._changed.wait()
                    if self._is_ended:
                        return
                put(*batch)
                with self._changed:
                    self._ready.append(([], position, 0))
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()


class _StagingStart(Callback):
    """Begins to stage before the first step.

    Args:
        source: the source.
    """

    chief_only = False

    def __init__(self, source: StagingInput) -> None:
        self._source = source

    def before_train(self) -> None:
        """Tell the source its trainer, and begin."""
        self._source.trainer = self.trainer
        self._source.begin()
