"""Parity report: the difference between an export and the session on real samples, with its size and speed."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

__all__ = ["ParityReport", "parity_report"]

Run = Callable[[np.ndarray], Mapping[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class ParityReport:
    """What an export gives beside what the session gave.

    Args:
        format: name of the format.
        samples: number of real samples compared.
        largest_difference: largest absolute difference of any output.
        relative_difference: the same as a share of the output's largest value, where that is above 1.
        tolerance: what the relative difference may be.
        holds: whether it is no more.
        accuracy_before: share of the samples that the session classifies rightly; None without class labels.
        accuracy_after: the same of the export.
        latency_before_ms: median time of the session for one sample.
        latency_after_ms: the same of the export.
        size_bytes: size on disk.
    """

    format: str
    samples: int
    largest_difference: float
    relative_difference: float
    tolerance: float
    holds: bool
    accuracy_before: float | None
    accuracy_after: float | None
    latency_before_ms: float
    latency_after_ms: float
    size_bytes: int

    def save(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def parity_report(
    name: str,
    path: Path,
    session: Run,
    export: Run,
    *,
    pictures: np.ndarray,
    labels: np.ndarray | None = None,
    tolerance: float = 1e-5,
) -> ParityReport:
    """Run both on the same samples and compare.

    Args:
        name: of the format.
        path: the file or folder of the export.
        session: what the export must equal.
        export: what runs the export.
        pictures: (N, …) inputs, real samples.
        labels: (N) class numbers, where there are any.
        tolerance: largest relative difference allowed.
    """
    before, after = session(pictures), export(pictures)
    differences = {key: float(np.abs(before[key] - after[key]).max()) for key in before}
    relative = max(difference / max(1.0, float(np.abs(before[key]).max())) for key, difference in differences.items())
    return ParityReport(
        format=name,
        samples=len(pictures),
        largest_difference=max(differences.values()),
        relative_difference=relative,
        tolerance=tolerance,
        holds=relative <= tolerance,
        accuracy_before=_accuracy(before, labels),
        accuracy_after=_accuracy(after, labels),
        latency_before_ms=_latency_ms(session, pictures[:1]),
        latency_after_ms=_latency_ms(export, pictures[:1]),
        size_bytes=_size_bytes(path),
    )


def _accuracy(outputs: Mapping[str, np.ndarray], labels: np.ndarray | None) -> float | None:
    if labels is None or outputs["output"].ndim != 2:
        return None
    return float((outputs["output"].argmax(1) == labels).mean())


def _latency_ms(run: Run, picture: np.ndarray, rounds: int = 15) -> float:
    times = []
    for _ in range(rounds + 3):
        began = time.perf_counter()
        run(picture)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times[3:])  # the first ones prepare


def _size_bytes(path: Path) -> int:
    if path.is_dir():
        return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))
