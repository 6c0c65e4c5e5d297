"""Contract of the preprocessing of a network's input: images, rows of tables, texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ziggurat.tasks.arrays import ArraySpec

__all__ = ["InputPreprocessing", "input_spec"]


class InputPreprocessing(Protocol):
    """What is done to every input, the same in training, validation, prediction and exports.

    It is fitted on the training split once, and saved in the job folder as ``preprocessing.json``.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what the network gets of one sample."""
        ...

    @property
    def dtype(self) -> str:
        """NumPy type of what the network gets."""
        ...

    @property
    def categories(self) -> tuple[int, ...]:
        """Of a table's row, for each number how many categories it has, 0 for a measured number; else empty."""
        ...

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens there are, where the input holds token numbers."""
        ...

    def decode(self, data: Any, key: Any) -> np.ndarray:
        """Return one input as an array that batches are made of: a fitted image as uint8, a row, token numbers.

        Args:
            data: as it is stored: bytes of an image, a list of a row's values, a text.
            key: of the sample, for errors.

        Raises:
            DatapointError: where it cannot be read.
        """
        ...

    def decode_sized(self, data: Any, key: Any) -> tuple[np.ndarray, tuple[int, int] | None]:
        """Return what ``decode`` returns, and the (height, width) in px of an image before it was fitted.

        Raises:
            DatapointError: where it cannot be read.
        """
        ...

    def finish(self, batch: np.ndarray, /) -> np.ndarray:
        """Return a batch as the network gets it.

        Args:
            batch: (N, …), what ``decode`` gave.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write it into a folder."""
        ...


def input_spec(preprocessing: InputPreprocessing) -> ArraySpec:
    """Return what the network gets of one sample."""
    return ArraySpec(
        shape=preprocessing.shape,
        dtype=preprocessing.dtype,
        classes=preprocessing.vocabulary_size,
        categories=preprocessing.categories,
    )
