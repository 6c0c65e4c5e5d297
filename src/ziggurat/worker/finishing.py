"""The last stage of a training batch: images cropped, less the mean, whitened, in memory that is used again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.stages.batching import BatchBuffers
from ziggurat.tasks.base import TaskContext

__all__ = ["Finish", "FinishAtRandom"]

_KEPT_BATCHES: Final = 3


class Finish:
    """Finishes a batch: cropped already, or cropped in the middle; the memory of a batch is used again when it can."""

    def __init__(self, context: TaskContext, *, numbered: bool = False, uint8: bool = False) -> None:
        self._context = context
        self._numbered = numbered
        self._uint8 = uint8
        self._buffers: dict[tuple[int, str], BatchBuffers] = {}

    def __call__(self, batch: Any) -> Any:
        *arrays, rows = batch if self._numbered else [*batch, None]
        finished = self._context.task.batch(self._context, arrays, self._finished)
        return [*finished, rows] if self._numbered else finished

    def _finished(self, inputs: np.ndarray) -> np.ndarray:
        preprocessing = self._context.preprocessing
        if not isinstance(preprocessing, Preprocessing):
            return preprocessing.finish(inputs)
        keeps = self._uint8 and inputs.dtype == np.uint8
        if keeps and inputs.shape[1:3] == preprocessing.output_shape[:2]:
            return inputs
        memory = self._memory(len(inputs), preprocessing.output_shape, np.uint8 if keeps else np.float32)
        return preprocessing.finish(inputs, out=memory)

    def _memory(self, count: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        key = (count, np.dtype(dtype).char)
        if key not in self._buffers:
            self._buffers[key] = BatchBuffers((count, *shape), _KEPT_BATCHES, dtype)
        return self._buffers[key].take()


class FinishAtRandom:
    """Finishes a batch with crops at random places.

    Args:
        context: of a job whose images are larger than their crop.
        uint8: whether crops of uint8 images stay so.
    """

    def __init__(self, context: TaskContext, *, uint8: bool = False) -> None:
        preprocessing = context.preprocessing
        assert isinstance(preprocessing, Preprocessing)
        self._context = context
        self._preprocessing = preprocessing
        self._uint8 = uint8
        height, width, _ = preprocessing.output_shape
        self._most = np.array(preprocessing.size) - (height, width)

    def offsets(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        """Return (N, 2) top and left of each crop of a batch of so many."""
        return np.stack([rng.randint(0, most + 1, count) for most in self._most], axis=1)

    def __call__(self, batch: Any, rng: np.random.RandomState) -> Any:
        """Return the batch as the network gets it."""
        offsets = self.offsets(len(batch[0]), rng)
        shape = (len(batch[0]), *self._preprocessing.output_shape)

        def finish(images: np.ndarray) -> np.ndarray:
            memory = np.empty(shape, np.uint8) if self._uint8 and images.dtype == np.uint8 else None
            return self._preprocessing.finish(images, offsets, memory)

        return self._context.task.batch(self._context, batch, finish)
