"""Estimates before a dataset is created: duration from earlier datasets of the workspace, and size on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.specs import DatasetSpec

__all__ = ["DatasetEstimate", "SourceFacts", "estimate_dataset", "rates_per_s", "source_bytes"]

_START_S: Final = 3.0
"""Time until a worker reads its first sample."""

_USUAL_PER_S: Final = 80.0
_USUAL_TEXTS_PER_S: Final = 2000.0
_FEWEST: Final = 100
"""Datasets with fewer samples are not used to estimate the speed."""

_MOST_FILES: Final = 50_000
_ENTRY_BYTES: Final = 250
"""Bytes per sample in the catalog and the index of the records."""

_ENCODED: Final = {"png": 0.5, "jpeg": 0.12, "raw": 1.0}
"""Encoding → bytes of the stored image for each byte of its pixels; photos, on average."""


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """Facts about a source, from a preview.

    Args:
        samples: number of samples.
        has_images: False for tables and texts.
        size_bytes: of the source; None where that is unknown.
        pixels: average pixels of an image.
        channels: of an image.
    """

    samples: int
    has_images: bool
    size_bytes: int | None
    pixels: float
    channels: int


@dataclass(frozen=True, kw_only=True)
class DatasetEstimate:
    """Estimated duration and size of a dataset.

    Args:
        duration_s: until it is finished, once it starts.
        size_bytes: on the disk; None where that is unknown.
        is_measured: whether the duration follows from earlier datasets of this workspace.
    """

    duration_s: float
    size_bytes: int | None
    is_measured: bool


def estimate_dataset(spec: DatasetSpec, facts: SourceFacts, earlier_rates: Sequence[float]) -> DatasetEstimate:
    """Return the estimated duration and size of a dataset.

    Args:
        spec: of the dataset.
        facts: about its source.
        earlier_rates: samples per second of earlier datasets of the same kind.
    """
    usual = _USUAL_PER_S if facts.has_images else _USUAL_TEXTS_PER_S
    duration_s = _START_S + facts.samples / (median(earlier_rates) if earlier_rates else usual)
    size_bytes = _size_bytes(spec, facts)
    return DatasetEstimate(duration_s=duration_s, size_bytes=size_bytes, is_measured=bool(earlier_rates))


def rates_per_s(jobs: Iterable[Job], facts: Mapping[str, Mapping[str, Any]], kind: str) -> list[float]:
    """Return the samples per second with which datasets were created.

    Args:
        jobs: finished datasets.
        facts: id → kind and samples.
        kind: of the datasets that count.
    """
    found = []
    for job in jobs:
        known = facts.get(job.id, {})
        samples = known.get("samples", 0)
        if known.get("kind") == kind and samples >= _FEWEST and job.started is not None and job.ended is not None:
            found.append(samples / max(0.5, job.ended - job.started - _START_S))
    return found


def source_bytes(source: Path) -> int | None:
    """Return the size of a source on this machine; None where it has too many files to count at once."""
    if source.is_file():
        return source.stat().st_size
    total = 0
    for number, size in enumerate(_sizes(source)):
        if number >= _MOST_FILES:
            return None
        total += size
    return total


def _sizes(folder: Path) -> Iterable[int]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            try:
                yield os.lstat(os.path.join(place, name)).st_size
            except OSError:  # it was deleted meanwhile
                continue


def _size_bytes(spec: DatasetSpec, facts: SourceFacts) -> int | None:
    entries = facts.samples * _ENTRY_BYTES
    is_changed = spec.size is not None or spec.channels is not None
    encoding = ("png" if is_changed else "original") if spec.encoding == "auto" else spec.encoding
    if encoding == "reference":
        return entries
    if encoding == "original" or not facts.has_images:
        return None if facts.size_bytes is None else facts.size_bytes + entries
    pixels = _product(spec.size) if spec.size is not None else facts.pixels
    return round(facts.samples * pixels * (spec.channels or facts.channels) * _ENCODED[encoding]) + entries


def _product(values: Sequence[int]) -> int:
    return values[0] * values[1]
