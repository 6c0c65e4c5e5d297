"""Parity report of an export: its outputs beside those of the network on real samples, and the metric of the task."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.engine.detection_parity import DETECTIONS, DetectionDifferences, DetectionRule, detection_rule
from ziggurat.errors import DataError
from ziggurat.tasks import Metric, TaskContext

__all__ = ["ParityReport", "Run", "parity_report"]

Run = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""Takes a batch of decoded inputs, returns name → output."""

_TOLERANCE: Final = 1e-5
"""Float32 carries seven digits, and runtimes sum in different orders."""

_METRIC_TOLERANCE: Final = 1e-3
"""Of the mean average precision, where the export gives detections."""

_APART: Final = 1e-3
"""Share of the detections that may have no partner: at the limits of overlap and score, the last digit decides."""

_VALUES_AT_ONCE: Final = 4_000_000
"""Of the inputs: the maps of a network for large images would not fit into memory for all samples."""


@dataclass(frozen=True, kw_only=True)
class ParityReport:
    """What an export gives beside what the network gave.

    Args:
        format: name of the format.
        samples: number of real samples compared.
        largest_difference: largest absolute difference of any output.
        relative_difference: the same as a share of the output's largest value, where that is above 1.
        tolerance: what the relative difference may be.
        holds: whether it is no more; of detections also whether the metric differs by no more than 0.001, and no more
            than one detection in a thousand has no partner.
        metric: primary metric of the task, for people; empty where the network does not give what it is made of.
        metric_before: its value on these samples for the network; None without a metric.
        metric_after: the same of the export.
        accuracy_before: accuracy of the network on these samples; None where the task measures none.
        accuracy_after: the same of the export.
        latency_before_ms: median time of the network for one sample.
        latency_after_ms: the same of the export.
        size_bytes: size on disk.
        boxes: detections of the network on these samples; None where the export gives none.
        boxes_apart: detections that only the network or only the export has.
    """

    format: str
    samples: int
    largest_difference: float
    relative_difference: float
    tolerance: float
    holds: bool
    metric: str
    metric_before: float | None
    metric_after: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    latency_before_ms: float
    latency_after_ms: float
    size_bytes: int
    boxes: int | None = None
    boxes_apart: int | None = None


def parity_report(
    name: str,
    path: Path,
    network: Run,
    export: Run,
    *,
    samples: np.ndarray,
    targets: Mapping[str, np.ndarray] | None = None,
    context: TaskContext | None = None,
) -> ParityReport:
    """Run both on the same samples and compare.

    Args:
        name: of the format.
        path: the file or folder of the export.
        network: what the export must equal.
        export: what runs the export.
        samples: (N, …) decoded inputs of real samples.
        targets: of these samples, for the metrics of the task.
        context: of the job; None for no metrics.

    Raises:
        DataError: where the export has other outputs than the network.
    """
    rule = detection_rule(context)
    differences: _Differences | DetectionDifferences | None = None
    before, after = (_Measures(context, targets or {}, rule) for _ in range(2))
    for part in _parts(samples):
        expected, found = network(samples[part]), export(samples[part])
        if differences is None:
            differences = DetectionDifferences(rule) if rule and DETECTIONS in found else _Differences()
        differences.add(expected, found)
        before.add(expected, part)
        after.add(found, part)
    assert differences is not None
    values = (before.values(), after.values())
    primary = None if context is None else context.task.primary_metric
    shown = None if primary is None or primary.name not in values[0] else primary
    metrics = [None if shown is None else each.get(shown.name) for each in values]
    counts = _counts(differences)
    holds = differences.relative <= _TOLERANCE
    if counts:
        is_near = None in metrics or abs(metrics[0] - metrics[1]) <= _METRIC_TOLERANCE  # pyright: ignore
        holds = holds and is_near and counts["boxes_apart"] <= _APART * counts["boxes"]
    return ParityReport(
        format=name,
        samples=len(samples),
        largest_difference=differences.largest,
        relative_difference=differences.relative,
        tolerance=_TOLERANCE,
        holds=holds,
        metric="" if shown is None else shown.title,
        metric_before=metrics[0],
        metric_after=metrics[1],
        accuracy_before=values[0].get("accuracy"),
        accuracy_after=values[1].get("accuracy"),
        latency_before_ms=_latency_ms(network, samples[:1]),
        latency_after_ms=_latency_ms(export, samples[:1]),
        size_bytes=_size_bytes(path),
        **counts,
    )


def _counts(differences: _Differences | DetectionDifferences) -> dict[str, int]:
    """Return how many detections were compared, and how many have no partner; empty for other outputs."""
    if isinstance(differences, _Differences):
        return {}
    return {"boxes": differences.boxes, "boxes_apart": differences.apart}


class _Differences:
    """The largest differences of outputs, over many batches; NaN where one is NaN."""

    def __init__(self) -> None:
        self._differences: dict[str, float] = {}
        self._values: dict[str, float] = {}

    def add(self, before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> None:
        """Compare a batch."""
        for name, expected in before.items():
            found = after.get(name)
            if found is None or found.shape != expected.shape:
                raise DataError(
                    f"The output {name} of the export "
                    f"{'is missing' if found is None else f'has shape {found.shape}'}, where the network gives "
                    f"{expected.shape}."
                )
            if expected.dtype.kind in "bu":
                expected, found = expected.astype(np.int64), found.astype(np.int64)
            difference = float(np.abs(expected - found).max(initial=0))
            value = float(np.abs(expected).max(initial=0))
            self._differences[name] = float(np.maximum(self._differences.get(name, 0.0), difference))
            self._values[name] = float(np.maximum(self._values.get(name, 0.0), value))

    @property
    def largest(self) -> float:
        """Largest absolute difference of any output."""
        return float(np.max(list(self._differences.values())))

    @property
    def relative(self) -> float:
        """The same as a share of the output's largest value, where that is above 1."""
        shares = [each / np.maximum(1.0, self._values[name]) for name, each in self._differences.items()]
        return float(np.max(shares))


class _Measures:
    """The metrics of a task, over many batches.

    Args:
        context: of the job; None for no metrics.
        targets: of all samples.
        rule: of detections; None where the task has none.
    """

    def __init__(
        self, context: TaskContext | None, targets: Mapping[str, np.ndarray], rule: DetectionRule | None = None
    ) -> None:
        self._metrics: Sequence[Metric] = () if context is None else context.task.metrics(context)
        self._needed = () if context is None else context.task.outputs
        self._targets = targets
        self._rule = rule
        self._is_known = False

    def add(self, outputs: Mapping[str, np.ndarray], part: slice) -> None:
        """Measure a batch; one without the outputs that the task needs is not measured."""
        if self._rule is not None and DETECTIONS in outputs:
            outputs = {self._rule.output: self._rule.as_output(outputs[DETECTIONS])}
        if not all(name in outputs for name in self._needed):
            return
        self._is_known = True
        for metric in self._metrics:
            metric.update(outputs, {name: values[part] for name, values in self._targets.items()})

    def values(self) -> dict[str, float]:
        """Return the values that are numbers."""
        if not self._is_known:
            return {}
        found = {name: value for metric in self._metrics for name, value in metric.compute().items()}
        return {name: value for name, value in found.items() if isinstance(value, float)}


def _parts(samples: np.ndarray) -> Iterator[slice]:
    at_once = max(1, _VALUES_AT_ONCE // max(1, int(np.prod(samples.shape[1:]))))
    for start in range(0, len(samples), at_once):
        yield slice(start, start + at_once)


def _latency_ms(run: Run, sample: np.ndarray, rounds: int = 15) -> float:
    times: list[float] = []
    for _ in range(rounds + 3):
        began = time.perf_counter()
        run(sample)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times[3:])  # the first ones prepare


def _size_bytes(path: Path) -> int:
    if path.is_dir():
        return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
