"""Perceptual hash of every image of a source, in parallel, before a split by near duplicates.

The hashes are those of the finished dataset: its records are made without hashing an image again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.creation.chunk import CHUNK
from ziggurat.datasets.creation.pictures import Fitting, decoded_picture
from ziggurat.datasets.creation.pool import in_processes
from ziggurat.datasets.creation.request import CreationStopped, Watch
from ziggurat.datasets.creation.scanning import ScanResult
from ziggurat.datasets.format_choice import importer
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.importer import PartReader
from ziggurat.errors import DatapointError

__all__ = ["hash_all"]


@dataclass(frozen=True, kw_only=True)
class _HashPlan:
    folder: Path
    catalogue: Path
    source: Path
    format: str
    options: Mapping[str, Any]
    fitting: Fitting | None

    def __hash__(self) -> int:
        return hash((self.folder, self.catalogue))


def hash_all(
    scan: ScanResult, source: Path, folder: Path, workers: int, watch: Watch, fitting: Fitting | None
) -> np.ndarray:
    """Return the perceptual hash of the first part of every sample, (N) int64; ``NO_HASH`` where it cannot be read.

    Args:
        scan: of the source.
        source: local folder or file.
        folder: for the hashes of the chunks that are done.
        workers: processes; 0 for this one.
        watch: is told of the progress.
        fitting: how images are decoded; None where there are none.

    Raises:
        CreationStopped: where somebody asked to stop; what was done is kept.
    """
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    plan = _HashPlan(
        folder=folder,
        catalogue=scan.catalogue,
        source=source,
        format=scan.format,
        options=scan.options,
        fitting=fitting,
    )
    count = -(-scan.count // CHUNK)
    missing = [chunk for chunk in range(count) if not _path(folder, chunk).exists()]
    done = count - len(missing)
    tasks = ((chunk, min(CHUNK, scan.count - chunk * CHUNK)) for chunk in missing if not watch.stop_requested())
    for _ in in_processes(_hash_chunk, plan, tasks, min(workers, len(missing))):
        done += 1
        watch.progress("hash", min(done * CHUNK, scan.count), scan.count)
    if watch.stop_requested():
        raise CreationStopped
    return np.concatenate([np.load(_path(folder, chunk), allow_pickle=False) for chunk in range(count)])


def _path(folder: Path, chunk: int) -> Path:
    return folder / f"{chunk:06d}.npy"


def _hash_chunk(plan: _HashPlan, chunk: int, count: int) -> int:
    catalogue, reader = _tools(plan)
    first = chunk * CHUNK
    hashes = [
        _hash(plan.fitting, reader, entry.parts[0], entry.key)
        for entry in catalogue.entries(range(first, first + count))
    ]
    target = AtomicFile(_path(plan.folder, chunk), replace=True)
    with storage_errors(target.final), target.path.open("wb") as file:
        np.save(file, np.array(hashes, np.int64), allow_pickle=False)
    target.publish()
    return chunk


@lru_cache(maxsize=2)
def _tools(plan: _HashPlan) -> tuple[Catalogue, PartReader]:
    return Catalogue(plan.catalogue), importer(plan.format).reader(plan.source, plan.options)


def _hash(fitting: Fitting | None, reader: PartReader, address: str | bytes, key: str) -> int:
    if fitting is None:
        return NO_HASH
    try:
        part = address if isinstance(address, bytes) else reader.read(address)
        return picture_hash(decoded_picture(part, fitting, key))
    except DatapointError:
        return NO_HASH  # it is listed as unreadable when the records are made
