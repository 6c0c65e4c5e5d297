"""Batches of one pass in progress, and the thread pool that fills them."""

from __future__ import annotations

import os
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ziggurat.dataflow.fast.crops import CropFailure, Cropper
from ziggurat.dataflow.fast.engines import open_engine
from ziggurat.dataflow.reading import Reader
from ziggurat.dataflow.stacking import stack_datapoints
from ziggurat.errors import UsageError

if TYPE_CHECKING:
    from ziggurat.dataflow.fast.batches import JpegCropBatches

__all__ = ["Window"]

_CHUNK = 16
"""How many images a thread takes at a time, at most."""


@dataclass
class _Pending:
    """A batch that is being made."""

    memory: np.ndarray
    others: Any
    work: list[Future[list[CropFailure]]]
    state_before: Any


class Window:
    """The batches of one pass that are being made, oldest first, and the threads that make them."""

    def __init__(self, stage: JpegCropBatches) -> None:
        self._stage = stage
        self._reader: Reader = stage.ds._ziggurat_read()
        self._stream = stage._ziggurat_stream()
        self._cropper = Cropper(open_engine(stage.engine), stage.crop)
        self._threads = ThreadPoolExecutor(stage.num_thread, "ziggurat-crops")
        self._pending: deque[_Pending] = deque()
        self._ended = False
        self._state_before_end: Any = None
        self._error: Exception | None = None
        self.close = weakref.finalize(self, _stop, self._threads, self._reader)

    @property
    def wants_more(self) -> bool:
        """Tell whether another batch should be begun."""
        return len(self._pending) <= self._stage.prefetch and not self._ended

    def state_before_next(self) -> Any:
        """Return the state of the flow that is read before what was not delivered yet; None: it is where it stands."""
        return self._pending[0].state_before if self._pending else self._state_before_end

    def begin(self, number: int) -> None:
        """Read the datapoints of the next batch, and give its images to the threads."""
        stage = self._stage
        if not self.close.alive:
            raise UsageError("A pass ends when its flow is closed.", received="`next()` of it", advice="Iterate anew.")
        state_before = stage.ds._ziggurat_state()
        try:
            points = self._reader.take(stage.batch_size)
            self._ended = len(points) < stage.batch_size
            if not points or (self._ended and not stage.remainder):
                self._state_before_end = state_before
                return
            first = number * stage.batch_size
            images = [_image_of(point) for point in points]
            keys = [_key_of(point, index, stage.key_index) for index, point in enumerate(points, first)]
            others = stack_datapoints([_others_of(point, stage.key_index) for point in points], first=first)
        except Exception as error:  # the batches before it come first
            self._error, self._ended, self._state_before_end = error, True, state_before
            return
        memory = stage.buffers.take()
        work = self._submit(images, keys, number, memory)
        self._pending.append(_Pending(memory[: len(points)], others, work, state_before))

    def finish(self) -> list[Any] | None:
        """Return the oldest batch, without the images that were dropped; None after the last."""
        if not self._pending:
            if self._error is not None:
                raise self._error
            return None
        batch = self._pending[0]
        failures = [failure for future in batch.work for failure in future.result()]
        policy = self._stage._ziggurat_policy
        for _slot, failure, cause in sorted(failures, key=lambda failed: failed.slot):
            policy.take(failure, cause)
        self._pending.popleft()
        parts = [batch.memory, *batch.others]
        if failures:
            failed = [failure.slot for failure in failures]
            usable = np.delete(np.arange(len(batch.memory)), failed)
            if self._stage.replace_failed and len(usable):
                rows = np.arange(len(batch.memory))
                rows[failed] = usable[np.searchsorted(usable, failed) % len(usable)]
                usable = rows
            parts = [_rows(part, usable) for part in parts]
        return parts

    def _submit(
        self, images: list[Any], keys: list[Any], number: int, memory: np.ndarray
    ) -> list[Future[list[CropFailure]]]:
        stage = self._stage
        numbers = stage.numbers_of(self._stream.seek(stage._ziggurat_pass_index, number))
        work = []
        step = max(1, min(_CHUNK, len(images) // stage.num_thread))
        for start in range(0, len(images), step):
            chunk = slice(start, start + step)
            arguments = (images[chunk], keys[chunk], numbers[chunk], memory, start)
            work.append(self._threads.submit(self._cropper.fill, *arguments))
        return work


def _stop(threads: ThreadPoolExecutor, reader: Reader) -> None:
    threads.shutdown(wait=True, cancel_futures=True)
    reader.close()


def _rows(part: Any, rows: np.ndarray) -> Any:
    return {key: _rows(value, rows) for key, value in part.items()} if isinstance(part, dict) else part[rows]


def _image_of(point: Any) -> Any:
    if isinstance(point, list | tuple) and point:
        return point[0]
    raise UsageError(
        "A datapoint for `JpegCropBatches` is a list or tuple that begins with an image.",
        received=type(point).__name__,
        advice="Let the flow yield `[image, label]`, for example by `MapData`.",
    )


def _key_of(point: Any, index: int, key_index: int | None) -> Any:
    if key_index is not None:
        return point[key_index]
    return os.fspath(point[0]) if isinstance(point[0], str | os.PathLike) else index


def _others_of(point: Any, key_index: int | None) -> Any:
    return point[1:] if key_index is None else [*point[1:key_index], *point[key_index + 1 :]]
