"""Contract of a metric: it is updated batch by batch, and partial results are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Metric"]


class Metric(ABC):
    """A measure of predictions over many batches.

    Its state holds counts and sums only, so metrics of disjoint parts of the samples can be merged in any order, with
    the same values as one pass over all samples.
    """

    @abstractmethod
    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Args:
            outputs: name of an output of the network → its values (N, …), or a scalar of the batch.
            targets: name of a target → its values (N, …).
        """

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """Return the values over all batches as JSON values: numbers, and lists and objects for tables."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Return the counts and sums, for ``merge``."""

    @abstractmethod
    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the state of a metric of the same kind that measured other samples.

        Raises:
            UsageError: if the state is of other classes or sizes.
        """
