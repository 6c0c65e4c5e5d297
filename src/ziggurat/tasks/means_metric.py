"""Means over samples of scalars that are reported for each batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ziggurat.tasks.metric import Metric

__all__ = ["MeansMetric"]


class MeansMetric(Metric):
    """Means of all scalar outputs, such as ``cost`` and the user's summaries; each output is the mean of its batch.

    The first of the targets, (N, …), gives the number of samples in a batch.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._sums: dict[str, float] = {}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch; outputs that are not scalars are ignored."""
        count = len(next(iter(targets.values())))
        self.samples += count
        for name, value in outputs.items():
            if np.ndim(value) == 0:
                self._sums[name] = self._sums.get(name, 0.0) + float(value) * count

    def compute(self) -> dict[str, Any]:
        """Return name → mean over all samples, by name; empty before the first batch."""
        return {name: total / self.samples for name, total in sorted(self._sums.items()) if self.samples}

    def state(self) -> dict[str, np.ndarray]:
        """Return the number of samples, and the sum of each output."""
        return {"samples": np.asarray(self.samples), **{f"sum/{name}": np.asarray(v) for name, v in self._sums.items()}}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the sums of other samples."""
        self.samples += int(state["samples"])
        for name, value in state.items():
            if name.startswith("sum/"):
                self._sums[name[4:]] = self._sums.get(name[4:], 0.0) + float(value)
