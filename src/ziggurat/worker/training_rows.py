"""Single images as a training will see them, at any epoch, without reading the ones before.

Every random number of a pipeline depends on the seed, the stage, the epoch and the place in it only. So the stages that
a training runs are asked here for one place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ziggurat.dataflow.batching import BatchData
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.worker.data import DataOptions, FinishAtRandom, fitted_preprocessing, training_flow
from ziggurat.worker.image_source import ImageSource

__all__ = ["TrainingRows"]


class TrainingRows:
    """The images of a training split as the network gets them, before a mean is taken off and before whitening.

    Where a sample of the split cannot be read, a training goes on with the next one, and the places behind it move by
    one; a dataset that Ziggurat made has no such sample.

    Args:
        source: its splits.
        options: what the job asks of its data; its seed decides everything.

    Attributes:
        preprocessing: what is done to every image, without a mean.
    """

    def __init__(self, source: ImageSource, options: DataOptions) -> None:
        plain = replace(options, mean="none")
        self.preprocessing = fitted_preprocessing(source, plain)
        self._batch_size = options.batch_size
        self._augmentation = options.augmentation
        finish: Any = training_flow(source, self.preprocessing, plain, by_row=True).seed(options.seed)
        batches: BatchData = finish.ds
        below: Any = batches.ds
        self._finish = finish
        self._vary: Any = None if isinstance(below, IndexedFlow) else below
        rows: Any = getattr(below, "ds", below)
        self._rows: IndexedFlow = rows
        self._orders: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def order(self, epoch: int) -> np.ndarray:
        """Return the rows in the order of an epoch, counted from 0."""
        if epoch not in self._orders:
            state = {**self._rows.state(), "pass": epoch, "ended": False}
            self._rows.load_state(state)
            self._orders[epoch] = self._rows.order()
        return self._orders[epoch]

    def seen(self, row: int, epoch: int) -> np.ndarray | None:
        """Return an image as the network gets it, (H, W, C) uint8.

        Args:
            row: in the training split.
            epoch: from 0.

        Returns:
            None where the row is among the last of the epoch, which fill no batch and are left out.

        Raises:
            DatapointError: where it cannot be read.
            DataError: where it does not fit to the others of its batch.
        """
        place = int(np.flatnonzero(self.order(epoch) == row)[0])
        batch, inside = divmod(place, self._batch_size)
        if (batch + 1) * self._batch_size > len(self):
            return None
        point = self._rows.datapoint(row)
        if self._vary is not None:
            point = self._vary.func(point, rng=self._vary.stream("map").seek(epoch, place))
        if point[0].shape[:2] != self.preprocessing.size:
            self._augmentation.check_size(self.preprocessing.size)
        return self._cropped(point[0], batch, inside, epoch)

    def _cropped(self, picture: np.ndarray, batch: int, inside: int, epoch: int) -> np.ndarray:
        finish = self._finish.func
        if not isinstance(finish, FinishAtRandom):
            return picture
        numbers = self._finish.stream("map").seek(epoch, batch)
        top, left = finish.offsets(self._batch_size, numbers)[inside]
        height, width, _ = self.preprocessing.output_shape
        return picture[top : top + height, left : left + width]

    def close(self) -> None:
        """Close the split."""
        self._finish.close()
