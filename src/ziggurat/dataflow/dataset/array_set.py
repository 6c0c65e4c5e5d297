"""Base of in-memory datasets of small images: loaded once, with batches gathered by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from ziggurat.dataflow.indexed import IndexedFlow

__all__ = ["ArraySet"]


class ArraySet(IndexedFlow):
    """Images with labels: datapoints ``[image, label]``.

    A subclass sets what ``_load()`` needs before it calls ``super().__init__``. In another process the files are read
    again, instead of being sent there.

    Args:
        shuffle: a new random order in every pass.
    """

    gathers = True

    def __init__(self, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self._arrays: tuple[np.ndarray, np.ndarray] | None = self._load()

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        """Return images (N, …) and labels (N,)."""
        raise NotImplementedError

    def _converted(self, images: np.ndarray) -> np.ndarray:
        """Return images as the flow yields them, in new memory; it works on one and on many."""
        return images.copy()

    def _label(self, label: Any) -> Any:
        """Return one label as the flow yields it."""
        return label

    @property
    def images(self) -> np.ndarray:
        """All images as they are stored, (N, …) uint8; not to be changed."""
        return self._both()[0]

    @property
    def labels(self) -> np.ndarray:
        """All labels, (N,); not to be changed."""
        return self._both()[1]

    def __len__(self) -> int:
        return len(self._both()[1])

    def datapoint(self, index: int) -> list[Any]:
        """Return an image, in new memory, and its label."""
        images, labels = self._both()
        return [self._converted(images[index]), self._label(labels[index])]

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return images and labels of many datapoints."""
        images, labels = self._both()
        return [self._converted(images.take(indices, axis=0)), labels.take(indices)]

    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        if self._arrays is None:
            self._arrays = self._load()
        return self._arrays

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": None}
