"""Contract of the preprocessing of a network's input: images, rows of tables, texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ziggurat.tasks.arrays import ArraySpec

__all__ = ["InputPreprocessing"]


class InputPreprocessing(Protocol):
    """What is done to every input, the same in training, validation, prediction and exports.

    It is fitted on the training split once, and saved in the job folder as ``preprocessing.json``.
    """

    def spec(self) -> ArraySpec:
        """Return what the network gets of one sample."""
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

    def finish(self, batch: np.ndarray) -> np.ndarray:
        """Return a batch as the network gets it.

        Args:
            batch: (N, …), what ``decode`` gave.
        """
        ...

    def as_json(self) -> Mapping[str, Any]:
        """Return everything that ``decode`` and ``finish`` depend on, as JSON values; for exports and model cards."""
        ...

    def save(self, folder: Path) -> None:
        """Write it into a folder."""
        ...
