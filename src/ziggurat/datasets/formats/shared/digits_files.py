"""Files that the LMDB and HDF5 exports for DIGITS share: mean image, class names, image shape."""

from __future__ import annotations

from typing import Final

import numpy as np

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.exports import Export, pixels_of
from ziggurat.datasets.wire_format import pack_blob
from ziggurat.errors import DatapointError

__all__ = ["MEAN_QUALITY", "PictureShape", "write_mean"]

MEAN_QUALITY: Final = 90


class PictureShape:
    """Lets only images of one size and number of channels through: those of the first."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self.shape: tuple[int, ...] = ()

    def pixels(self, dataset: Dataset, sample: StoredSample) -> np.ndarray | None:
        """Return the pixels of a sample, (H, W, C) uint8; None where it had to be left out."""
        try:
            pixels = pixels_of(dataset, sample)
        except DatapointError as error:
            self._export.leave_out(sample.key, "unreadable", error.rule)
            return None
        self.shape = self.shape or pixels.shape
        if pixels.shape == self.shape:
            return pixels
        reason = f"It has height, width and channels {pixels.shape}, the first image {self.shape}."
        self._export.leave_out(sample.key, "other-size", reason)
        return None


def write_mean(export: Export) -> None:
    """Write ``mean.binaryproto``, (1, C, H, W) in BGR, and ``mean.jpg``, where the dataset has a mean image.

    DIGITS rounds the mean to whole numbers, and so does this.
    """
    mean = export.dataset.mean()
    if mean is None:
        export.notes.append("The dataset has no mean image, so `mean.binaryproto` is not written.")
        return
    pixels = np.rint(mean).clip(0, 255).astype(np.uint8)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    bgr = np.ascontiguousarray(pixels[:, :, ::-1].transpose(2, 0, 1))
    export.write("mean.binaryproto", pack_blob(bgr[None].astype(np.float32)))
    export.write("mean.jpg", encode_image(pixels, "jpeg", quality=MEAN_QUALITY))
