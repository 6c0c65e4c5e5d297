"""Means over samples of scalars that are reported for each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from ziggurat.tasks.metric import Metric
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

__all__ = ["MeansMetric"]


class MeansMetric(Metric):
    """Means of all scalar outputs, such as ``cost`` and the user's summaries; each output is the mean of its batch.

    The first of the targets, (N, …), gives the number of samples in a batch. A loss that is weighted by something else,
    as the weights of classes, is a ``WeightedMean``: its sums and its weights are added up.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._sums: dict[str, float] = {}
        self._weighted: dict[str, list[WeightedSum]] = {}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch; outputs that are not scalars are ignored."""
        count = len(next(iter(targets.values())))
        self.samples += count
        for name, value in outputs.items():
            if isinstance(value, WeightedMean):
                self._add(name, value.sums)
            elif np.ndim(value) == 0:
                self._sums[name] = self._sums.get(name, 0.0) + float(value) * count

    def compute(self) -> dict[str, Any]:
        """Return name → mean over all samples, by name; empty before the first batch."""
        means = {name: total / self.samples for name, total in self._sums.items() if self.samples}
        means |= {name: sum(each.mean for each in sums) for name, sums in self._weighted.items()}
        return dict(sorted(means.items()))

    def state(self) -> dict[str, np.ndarray]:
        """Return the number of samples, and the sum of each output."""
        sums = {f"sum/{name}": np.asarray(total) for name, total in self._sums.items()}
        weighted = {f"weighted/{name}": np.array([astuple(each) for each in v]) for name, v in self._weighted.items()}
        return {"samples": np.asarray(self.samples), **sums, **weighted}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the sums of other samples."""
        self.samples += int(state["samples"])
        for name, value in state.items():
            if name.startswith("sum/"):
                self._sums[name[4:]] = self._sums.get(name[4:], 0.0) + float(value)
            elif name.startswith("weighted/"):
                self._add(name.removeprefix("weighted/"), [WeightedSum(*row) for row in value.tolist()])

    def _add(self, name: str, sums: Sequence[WeightedSum]) -> None:
        before = self._weighted.get(name) or [WeightedSum()] * len(sums)
        self._weighted[name] = [one + other for one, other in zip(before, sums, strict=True)]
