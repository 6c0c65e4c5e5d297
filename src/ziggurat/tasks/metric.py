"""Contract of a metric: it is updated batch by batch, and partial results are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Metric"]


class Metric(ABC):
    """A measure of predictions over many batches.

    What it keeps are counts and sums, so that parts of the samples, measured apart and merged in any order, come to the
    same values as all of them in one pass.
    """

    @abstractmethod
    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Take in a batch.

        Args:
            outputs: name of an output of the network → (N, …) its values.
            targets: name of a target → (N, …) what was to be predicted.
        """

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """Return the values of all that was taken in: numbers, and lists and objects for tables, as JSON values."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Return what was counted, for ``merge``."""

    @abstractmethod
    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Take in the state of a metric of the same kind that measured other samples.

        Raises:
            UsageError: if the state is that of other classes or sizes.
        """
