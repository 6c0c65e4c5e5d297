"""Description of the arrays of a batch: what a network gets, and what it learns to give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ArraySpec"]


@dataclass(frozen=True)
class ArraySpec:
    """One of the arrays of a batch, which has an axis of the samples before those of ``shape``.

    Args:
        shape: of one sample's array, such as (H, W, C); empty for a number.
        dtype: name of the NumPy type that the backend computes with; a batch may hold one that converts to it.
        classes: how many classes there are, where the array holds class numbers (or one number for each class); of
            token numbers, the size of the vocabulary; None where that is not known, or it holds other numbers.
        categories: of a table's row, for each of its numbers how many categories it has; 0 for a measured number.
        mean: of each measured value that is to be learned, over the training split; empty where it is not known.
        std: standard deviation of each such value, above 0; likewise.
        has_objects: whether it has the rows of objects that ``ziggurat.tasks.detection_arrays`` describes.
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    classes: int | None = None
    categories: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    has_objects: bool = False

    @property
    def is_class_number(self) -> bool:
        """Whether it holds one class number for a sample."""
        return self.shape == () and np.issubdtype(np.dtype(self.dtype), np.integer)

    @property
    def is_image(self) -> bool:
        """Whether it is an image or a mask, (H, W, C)."""
        return len(self.shape) == 3 and not self.has_objects
