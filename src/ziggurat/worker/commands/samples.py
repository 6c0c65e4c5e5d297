"""Real samples, preprocessed as in training, for the parity check of an export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.errors import DataError, DatapointError
from ziggurat.worker.commands.trained import TrainedJob
from ziggurat.worker.sources import open_source

__all__ = ["first_samples"]

_FOR_PROOF: Final = ("val", "test", "train")


def first_samples(job: TrainedJob, count: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Return up to ``count`` real samples that the network was not trained on, where there are any.

    Returns:
        The split, images (N, height, width, C) uint8, fitted, and labels (N) int64. They are spread over the split.
    """
    source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed)
    split = next(name for name in _FOR_PROOF if name in source.splits and len(source.splits[name]))
    fit = _Fit(job, source.in_memory)
    points = []
    for point in _spread(source.splits[split], count):
        try:
            points.append(fit(point))
        except DatapointError:
            continue  # an unreadable file proves nothing
    if not points:
        raise DataError(
            "A model is proven on samples that can be read.",
            received=f"none in the split {split} of {job.spec.data.source}",
            advice="Check the data's folder.",
        )
    return split, np.stack([point[0] for point in points]), np.array([point[1] for point in points], np.int64)


def _spread(flow: DataFlow, count: int) -> Iterator[Any]:
    """Yield up to ``count`` datapoints from all over a flow: in the order of the classes, the first are of one."""
    chosen = np.linspace(0, len(flow) - 1, num=min(count, len(flow)), dtype=int).tolist()
    if isinstance(flow, IndexedFlow):
        yield from flow.read_many(chosen)
        return
    wanted = set(chosen)
    yield from (point for number, point in enumerate(flow) if number in wanted)


class _Fit:
    """Decodes and fits an image as the job's preprocessing says."""

    def __init__(self, job: TrainedJob, in_memory: bool) -> None:
        self._preprocessing = job.preprocessing
        self._in_memory = in_memory

    def __call__(self, point: Any) -> list[Any]:
        fit = self._preprocessing
        return [fit.fit(point[0]) if self._in_memory else fit.decode(point[0], "picture"), point[1]]
