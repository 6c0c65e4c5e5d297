"""Batches of crops from JPEG files or records, decoded by threads directly into the batch."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from ziggurat.dataflow.base import DataFlow, ProxyDataFlow, Reader
from ziggurat.dataflow.fast.boxes import CropPolicy, RandomResizedCrop
from ziggurat.dataflow.fast.crops import CropFailure, Cropper
from ziggurat.dataflow.fast.engines import EngineName, open_engine
from ziggurat.dataflow.parallel.options import default_workers
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.sources import DataFromList
from ziggurat.dataflow.stages.batching import BatchBuffers, stack_datapoints
from ziggurat.errors import UsageError

__all__ = ["JpegCropBatches"]

_CHUNK = 16
"""How many images a thread takes at a time, at most."""


class CropOptions(TypedDict, total=False):
    """Options of ``JpegCropBatches``.

    Args:
        num_thread: threads that decode; None: one for each CPU that this process may use.
        engine: "auto" for the best that works here, "native" or "opencv".
        prefetch: batches that are worked on while the consumer has one; 2 by default.
        key_index: number of the component that names the image in errors; it is left out of the batch. None: a path
            names itself, another image has its number in the pass.
        replace_failed: whether an image that is dropped is replaced by the next usable one of its batch, with its other
            components, so that every batch is full.
    """

    num_thread: int | None
    engine: EngineName
    prefetch: int
    key_index: int | None
    replace_failed: bool


class JpegCropBatches(ProxyDataFlow):
    """Batches of crops of images, decoded in threads no further than the crop needs.

    Of a JPEG file only the rows and columns of the crop are decoded, reduced by the decoder where the crop is larger
    than the result, and written straight into the batch; ``ziggurat.dataflow.fast.engine()`` tells by what. Other
    images (PNG, CMYK, …) are decoded whole and come out the same. The orientation in EXIF is applied.

    Args:
        ds: flow of datapoints whose first component is an image: a path, the content of an image file (bytes), or
            pixels (H, W, 3) uint8. A list of such datapoints is taken as it stands, in its order.
        batch_size: images in a batch.
        crop: which part of each image is taken, and the size of the result.
        remainder: whether the last batch of a pass may be smaller; otherwise it is left out.
        on_error: what happens to an image that cannot be used: "raise" a ``DatapointError`` with its key, or "skip" or
            "log" it: its batch is smaller then; a batch that would be empty is left out.
        options: see ``CropOptions``.

    Yields:
        [images, *components]: images (N, H, W, 3) uint8, RGB; the other components stacked to arrays. The memory of a
        batch is used again once nothing refers to it any more: it may be kept for as long as it is wanted.

    The boxes depend on the seed, the pass and the place in the pass only: not on threads, engine or ``prefetch``.
    """

    def __init__(
        self,
        ds: DataFlow | Sequence[Any],
        batch_size: int,
        crop: CropPolicy | None = None,
        *,
        remainder: bool = False,
        on_error: OnError | ErrorPolicy = "raise",
        **options: Unpack[CropOptions],
    ) -> None:
        super().__init__(ds if isinstance(ds, DataFlow) else DataFromList(ds, shuffle=False))
        self.batch_size = _positive("batch_size", batch_size)
        self.crop = crop or RandomResizedCrop()
        self.remainder = remainder
        self.policy = ErrorPolicy.of(on_error)
        self.num_thread = _positive("num_thread", default_workers(options.get("num_thread"), "num_thread"))
        self.engine: EngineName = options.get("engine", "auto")
        self.prefetch = _positive("prefetch", options.get("prefetch", 2))
        self.key_index = options.get("key_index")
        self.replace_failed = options.get("replace_failed", False)
        # `prefetch` + 1 batches are in work, one is with the consumer, and one is to spare.
        self.buffers = BatchBuffers((self.batch_size, *self.crop.shape, 3), keep=self.prefetch + 3)
        open_engine(self.engine)  # an engine that is not there is told of now
        self._empty_batches = 0
        self._window: Window | None = None

    def __len__(self) -> int:
        """Return the number of batches; images that are dropped do not change it unless they fill a whole batch."""
        full, rest = divmod(len(self.ds), self.batch_size)
        return full + (1 if rest and self.remainder else 0)

    def iterate(self) -> Iterator[list[Any]]:
        """Yield the batches from number ``resume_index`` on."""
        if not self._ziggurat_resume_index:
            self._empty_batches = 0
        number = self._ziggurat_resume_index + self._empty_batches
        window = self._window = Window(self)
        try:
            while True:
                while window.wants_more:
                    window.begin(number)
                    number += 1
                batch = window.finish()
                if batch is None:
                    return
                if len(batch[0]):
                    yield batch
                else:
                    self._empty_batches += 1
                del batch  # its memory is free for the next one, unless the consumer kept it
        finally:
            window.close()

    def crop_of(self, point: Any, pass_index: int, place: int) -> np.ndarray:
        """Return the crop of one image, (H, W, 3) uint8, as a pass has it at a place, without running the pass.

        Args:
            point: a datapoint of the flow that is read.
            pass_index: number of the pass, from 0.
            place: of the datapoint in the pass, from 0.

        Raises:
            DatapointError: where the image cannot be used.
        """
        batch, slot = divmod(place, self.batch_size)
        numbers = self.numbers_of(self._ziggurat_stream().seek(pass_index, batch))[slot : slot + 1]
        key = place if self.key_index is None else point[self.key_index]
        out = np.empty((1, *self.crop.shape, 3), np.uint8)
        for failed in Cropper(open_engine(self.engine), self.crop).fill([point[0]], [key], numbers, out, 0):
            ErrorPolicy("raise").take(failed.failure, failed.cause)
        return out[0]

    def numbers_of(self, generator: np.random.RandomState) -> np.ndarray:
        """Return the random numbers of a batch, (batch_size, ``crop.numbers``) float64."""
        return generator.random_sample((self.batch_size, self.crop.numbers))

    def children_state(self) -> list[Any]:
        """Return where the flow that is read stood before the first batch that was not delivered yet."""
        state = self._window.state_before_next() if self._window is not None else None
        return super().children_state() if state is None else [state]

    def stage_state(self) -> Any:
        """Return how many batches of the pass were left out because no image of them could be used."""
        return self._empty_batches or None

    def load_stage_state(self, state: Any) -> None:
        """Take that number back."""
        self._window = None
        self._empty_batches = state or 0

    def close(self) -> None:
        """End the threads of a pass that goes on, which cannot be continued then, and free the memory of batches."""
        if self._window is not None:
            self._window.close()
        self.buffers.clear()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_window": None}

    def _ziggurat_begin_pass(self, position: Any) -> None:
        self._settle()
        super()._ziggurat_begin_pass(position)

    def _ziggurat_abandon(self) -> None:
        self._settle()
        super()._ziggurat_abandon()

    def _settle(self) -> None:
        """After a pass that was broken off: lead the flow that is read back to what was delivered."""
        window, self._window = self._window, None
        if window is None:
            return
        window.close()
        state = window.state_before_next()
        if state is not None:
            self.ds._ziggurat_load_state(state)
            self.ds._ziggurat_abandon()


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"`{name}` is {value}, not 1 or more.")
    return int(value)


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
        # Also when the window is garbage-collected: no thread outlives its pass.
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
                # The next usable row; behind the last one, the first of the batch.
                rows[failed] = usable[np.searchsorted(usable, failed) % len(usable)]
                usable = rows
            parts = [_rows(part, usable) for part in parts]
        return parts

    def _submit(
        self, images: list[Any], keys: list[Any], number: int, memory: np.ndarray
    ) -> list[Future[list[CropFailure]]]:
        stage = self._stage
        # Drawn for the whole batch at once, so that the number of threads does not change the crops.
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
