"""Batches of crops from JPEG files or records, decoded by threads directly into the batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ziggurat.dataflow.base import DataFlow, ProxyDataFlow
from ziggurat.dataflow.fast.boxes import CropPolicy, RandomResizedCrop
from ziggurat.dataflow.fast.engines import EngineName, open_engine
from ziggurat.dataflow.fast.window import Window
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import UsageError

__all__ = ["JpegCropBatches"]


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
        num_thread: threads that decode; None: one for each CPU that this process may use.
        engine: "auto" for the best that works here, or "native", "turbojpeg" or "opencv".

    Yields:
        [images, *components]: images (N, H, W, 3) uint8, RGB; the other components stacked to arrays. The memory of a
        batch is used again once nothing refers to it any more: it may be kept for as long as it is wanted.

    The boxes depend on the seed, the pass and the place in the pass only; up to three batches are worked on at a time.
    """

    def __init__(
        self,
        ds: DataFlow | Sequence[Any],
        batch_size: int,
        crop: CropPolicy | None = None,
        *,
        remainder: bool = False,
        on_error: OnError | ErrorPolicy = "raise",
        num_thread: int | None = None,
        engine: EngineName = "auto",
    ) -> None:
        super().__init__(ds if isinstance(ds, DataFlow) else DataFromList(ds, shuffle=False))
        self.batch_size = _positive("batch_size", batch_size)
        self.crop = crop or RandomResizedCrop()
        self.remainder = remainder
        self.policy = ErrorPolicy.of(on_error)
        self.num_thread = _positive("num_thread", _usable_cpus() if num_thread is None else num_thread)
        self.engine: EngineName = engine
        open_engine(engine)  # an engine that is not there is told of now
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
        """End the threads of a pass that goes on, which cannot be continued then."""
        if self._window is not None:
            self._window.close()
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


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"`{name}` is 1 or more.", received=value)
    return int(value)
