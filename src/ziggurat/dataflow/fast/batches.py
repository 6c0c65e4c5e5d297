"""Batches of crops from JPEG files or records, decoded by threads directly into the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from ziggurat.dataflow.base import DataFlow, ProxyDataFlow
from ziggurat.dataflow.batch_buffers import BatchBuffers
from ziggurat.dataflow.fast.boxes import CropPolicy, RandomResizedCrop
from ziggurat.dataflow.fast.crops import Cropper
from ziggurat.dataflow.fast.engines import EngineName, open_engine
from ziggurat.dataflow.fast.window import Window
from ziggurat.dataflow.parallel.options import default_workers
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import UsageError

__all__ = ["CropOptions", "JpegCropBatches"]


class CropOptions(TypedDict, total=False):
    """Options of ``JpegCropBatches``.

    Args:
        num_thread: threads that decode; None: one for each CPU that this process may use.
        engine: "auto" for the best that works here, or "native", "turbojpeg" or "opencv".
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
        raise UsageError(f"`{name}` is 1 or more.", received=value)
    return int(value)
