"""Features of the samples of a dataset, kept so that a backbone that stands still runs once for each of them."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import folder_mode, replaced_file
from ziggurat.errors import DataError

__all__ = ["MOST_BYTES", "FeatureKey", "FeatureStore", "StoredFeatures"]

MOST_BYTES: Final = 4 << 30
"""Space that the features of a workspace may take: 800,000 samples of 1,280 features."""


_OLD_S: Final = 24 * 3600
"""Age from which on an unfinished file is one that nobody writes."""


@dataclass(frozen=True, kw_only=True)
class FeatureKey:
    """Everything that features depend on; equal keys give equal features.

    Args:
        samples: names the samples and their order by content, such as the fingerprint of a dataset's split.
        weights: SHA-256 of the weights of the backbone or the model.
        network: name of the network, or SHA-256 of its file.
        preprocessing: size, channels, resize mode, mean and all else that is done to a sample before the network.
        framework: name of the framework that computes the features.
        arithmetic: of the process that computes; see ``ziggurat.engine.arithmetic``.
    """

    samples: str
    weights: str
    network: str
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    framework: str = ""
    arithmetic: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The key as JSON, always in the same order."""
        return json.dumps(asdict(self), sort_keys=True, default=str)

    @property
    def digest(self) -> str:
        """What the files of the features are called."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class StoredFeatures:
    """One entry of a store.

    Args:
        name: of its files.
        facts: its key, as it was given.
        size: bytes.
        used: when it was last used, in seconds since 1970.
    """

    name: str
    facts: Mapping[str, Any]
    size: int
    used: float


class FeatureStore:
    """A folder of features, one file of numbers for each key; what was not used for longest goes first.

    Several processes may read and write it at the same time: a file gets its name when it is whole, and one that is
    deleted while it is read stays readable for who reads it. A damaged file counts as none.

    Args:
        folder: made when the first features are written.
        most_bytes: limit of the size of all features together.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    def find(self, key: FeatureKey) -> np.ndarray | None:
        """Return (N, D) float32 features, read from the file when they are used; None where there are none."""
        path = self._path(key.digest)
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            facts = path.with_suffix(".json").read_text(encoding="utf-8")
        except (OSError, ValueError, EOFError):
            return None
        if facts != key.text or found.ndim != 2 or found.dtype != np.float32:
            return None
        with suppress(OSError):
            os.utime(path)  # the newest use, for who makes room
        return found

    def write(self, key: FeatureKey, blocks: Iterable[np.ndarray], count: int) -> np.ndarray:
        """Store features and return them as :meth:`find` does; other ones are deleted where there is no room.

        Features that alone are larger than the store may be stay until the next ones are written.

        Args:
            key: what they depend on.
            blocks: (n, D) each, in the order of the samples.
            count: N, of all samples.

        Raises:
            DataError: where the blocks have another number of samples.
            StorageError: where the disk is full; nothing is kept then.
        """
        self.folder.mkdir(mode=folder_mode(self.folder.parent), parents=True, exist_ok=True)
        path = self._path(key.digest)
        with replaced_file(path.with_suffix(".json"), "The key of features") as facts:
            facts.write_text(key.text, encoding="utf-8")
            with replaced_file(path, "Features") as temporary, temporary.open("wb") as file:
                done = 0
                for block in blocks:
                    rows = np.ascontiguousarray(block, np.float32)
                    if not done:
                        shape = (count, rows.shape[1])
                        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                        np.lib.format.write_array_header_1_0(file, header)
                    file.write(rows.data)
                    done += len(rows)
                if done != count or not done:
                    raise DataError(
                        "Features of another number of samples came than were announced.",
                        received=f"{done} of {count}",
                        advice="Look whether the dataset was changed meanwhile.",
                    )
        self._make_room(path)
        return np.load(path, mmap_mode="r", allow_pickle=False)

    def entries(self) -> list[StoredFeatures]:
        """Return what is stored, the newest use first."""
        found = []
        for path in self.folder.glob("*.npy"):
            with suppress(OSError, ValueError):
                facts, state = json.loads(path.with_suffix(".json").read_text(encoding="utf-8")), path.stat()
                found.append(StoredFeatures(name=path.stem, facts=facts, size=state.st_size, used=state.st_mtime))
        return sorted(found, key=lambda each: -each.used)

    def delete(self, name: str) -> None:
        """Delete one entry; nothing happens where there is none."""
        for known in self.entries():
            if known.name == name:
                self._unlink(self._path(name))

    def _make_room(self, kept: Path) -> None:
        for left in self.folder.glob(".*.tmp"):  # of a process that was killed
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _OLD_S:
                    left.unlink()
        room = self._most_bytes - kept.stat().st_size
        for each in self.entries():
            if each.name == kept.stem:
                continue
            room -= each.size
            if room < 0:
                self._unlink(self._path(each.name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    @staticmethod
    def _unlink(path: Path) -> None:
        for each in (path, path.with_suffix(".json")):
            with suppress(FileNotFoundError):
                each.unlink()
