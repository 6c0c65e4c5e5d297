"""Single images as a training will see them, at any epoch, without reading the ones before.

Every random number of a pipeline depends on the seed, the stage, the epoch and the place in it only. So the stages that
a training runs are asked here for one place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ziggurat.dataflow.fast import JpegCropBatches
from ziggurat.worker.image_source import ImageSource
from ziggurat.worker.pipeline import DataOptions, FinishAtRandom, Pipeline

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
        crops: whether images are cropped at random places.
    """

    def __init__(self, source: ImageSource, options: DataOptions) -> None:
        # The mean image alone keeps crops from being decoded by themselves, so it counts, whatever it is.
        whole = replace(options, decode="picture") if options.mean == "image" else options
        pipeline = Pipeline(source, replace(whole, mean="none"))
        self.preprocessing = pipeline.preprocessing
        self.crops = pipeline.crops
        self._augmentation = options.augmentation
        self._stages = pipeline.training(by_row=True)
        self._orders: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._stages.rows)

    def order(self, epoch: int) -> np.ndarray:
        """Return the rows in the order of an epoch, counted from 0."""
        if epoch not in self._orders:
            state = {**self._stages.rows.state(), "pass": epoch, "ended": False}
            self._stages.rows.load_state(state)
            self._orders[epoch] = self._stages.rows.order()
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
        stages = self._stages
        place = int(np.flatnonzero(self.order(epoch) == row)[0])
        batch, inside = divmod(place, stages.batches.batch_size)
        if (batch + 1) * stages.batches.batch_size > len(self):
            return None
        point: Any = stages.rows.datapoint(row)
        if isinstance(stages.batches, JpegCropBatches):
            return stages.batches.crop_of(point, epoch, place)
        if stages.vary is not None:
            vary: Any = stages.vary.func
            point = vary(point, rng=stages.vary.stream("map").seek(epoch, place))
        if point[0].shape[:2] != self.preprocessing.size:
            self._augmentation.check_size(self.preprocessing.size)
        return self._cropped(point[0], batch, inside, epoch)

    def _cropped(self, picture: np.ndarray, batch: int, inside: int, epoch: int) -> np.ndarray:
        finish = self._stages.finish.func
        if not isinstance(finish, FinishAtRandom):
            return picture
        numbers = self._stages.finish.stream("map").seek(epoch, batch)
        top, left = finish.offsets(self._stages.batches.batch_size, numbers)[inside]
        height, width, _ = self.preprocessing.output_shape
        return picture[top : top + height, left : left + width]

    def close(self) -> None:
        """Close the split."""
        self._stages.finish.close()
