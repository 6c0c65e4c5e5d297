"""Finished dataset: samples by split and row, images, catalog, and a log of accesses to the test split."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import RecordData, decode_mask
from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.errors import DataError, MissingEntryError
from ziggurat.formatting import plural
from ziggurat.layout import TEST_OPENINGS_FILE
from ziggurat.records.manifest import Manifest
from ziggurat.records.schema import Schema
from ziggurat.records.split_reader import SplitReader

__all__ = ["OPENINGS_NAME", "Dataset", "StoredSample"]

OPENINGS_NAME: Final = TEST_OPENINGS_FILE
_MASKS: Final = ("mask",)


@dataclass(frozen=True, kw_only=True)
class StoredSample:
    """One sample of a dataset.

    Args:
        key: its name.
        split: that it is in.
        row: its number in the split.
        parts: encoded images, texts, arrays; files of the source are read.
        label: in the form that the kind of the dataset says.
    """

    key: str
    split: str
    row: int
    parts: tuple[bytes | str | np.ndarray, ...]
    label: Any

    def part(self, number: int) -> Any:
        """Return one of its parts.

        Raises:
            MissingEntryError: where it has no such part.
        """
        if not 0 <= number < len(self.parts):
            raise MissingEntryError(
                "A part of a sample must be one of its parts, from 0.",
                received=f"part {number} of {self.key}, which has {plural(len(self.parts), 'part')}",
            )
        return self.parts[number]


class Dataset:
    """A dataset that is finished; it never changes. Use it in a ``with`` statement, or close it.

    Args:
        folder: where it was made.

    Raises:
        DataError: where the folder holds no finished dataset.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.manifest = Manifest.load(self.folder)
        self._readers: dict[str, SplitReader] = {}

    @property
    def name(self) -> str:
        """What people call it."""
        return self.manifest.name

    @property
    def schema(self) -> Schema:
        """What its records mean."""
        return self.manifest.schema

    @property
    def kind(self) -> str:
        """Its kind, a name in ``ziggurat.records.schema.KINDS``."""
        return self.manifest.schema.kind

    @property
    def splits(self) -> tuple[str, ...]:
        """Its splits, in order."""
        return tuple(self.manifest.splits)

    def __len__(self) -> int:
        return sum(note.count for note in self.manifest.splits.values())

    def size(self, split: str) -> int:
        """Return the number of samples of a split."""
        return len(self.reader(split))

    @cached_property
    def catalogue(self) -> Catalogue:
        """Knows every sample and problem, for exploring."""
        return Catalogue(self.folder / self.manifest.index)

    # ---- samples

    def reader(self, split: str) -> SplitReader:
        """Return what reads the records of a split.

        Raises:
            UnknownNameError: where there is no such split.
        """
        if split not in self._readers:
            self._readers[split] = SplitReader(self.folder, split, self.manifest)
        return self._readers[split]

    def sample(self, split: str, row: int) -> StoredSample:
        """Return one sample.

        Raises:
            RecordIndexError: where the split has no such row.
            DatapointError: where it cannot be read.
        """
        key, parts, label = self.reader(split).sample(row)
        return StoredSample(key=key, split=split, row=row, parts=parts, label=label)

    def samples(self, split: str | None = None) -> Iterator[StoredSample]:
        """Yield the samples of a split, or of all, in their order."""
        for name in self.splits if split is None else (split,):
            for row in range(self.size(name)):
                yield self.sample(name, row)

    def entry(self, split: str, row: int) -> Entry:
        """Return what the catalog knows of a sample.

        Raises:
            MissingEntryError: where there is no such sample.
        """
        counts = {name: note.count for name, note in self.manifest.splits.items()}
        if not 0 <= row < counts.get(split, 0):
            raise MissingEntryError("There is no such sample in this dataset.", received=f"{split}/{row}")
        before = sum(counts[name] for name in self.splits[: self.splits.index(split)])
        return self.catalogue.entries([before + row])[0]  # numbers go split by split, row by row

    def stored_size(self, entry: Entry) -> tuple[int, int] | None:
        """Return (width, height) of a sample's image as its label means it; None if unknown."""
        image = self.manifest.image
        if image is not None and image.width_px and image.height_px:
            return image.width_px, image.height_px
        return (entry.width_px, entry.height_px) if entry.width_px and entry.height_px else None

    def picture(self, split: str, row: int, part: int = 0) -> np.ndarray:
        """Return an image of a sample, decoded: (H, W, C) uint8, RGB; a mask as (H, W).

        Raises:
            MissingEntryError: where the sample has no such part.
            DataError: where the part is no image.
            DatapointError: where it cannot be read.
        """
        sample = self.sample(split, row)
        content = sample.part(part)
        if isinstance(content, np.ndarray):
            return content
        if isinstance(content, str) or self.manifest.image is None:
            raise DataError("Images are shown of datasets with images.", received=f"kind {self.kind}")
        if self.schema.parts[part] in _MASKS:
            return decode_mask(content, sample.key)
        form = self.manifest.image
        return decode_image(content, channels=1 if form.channels == 1 else 3, key=sample.key, bits=form.bits)

    def flow(self, split: str = "train", shuffle: bool = False, **options: Any) -> RecordData:
        """Return the flow over a split; ``options`` are those of ``ziggurat.dataflow.RecordData``."""
        return RecordData(self.folder, split, shuffle, **options)

    def mean(self) -> np.ndarray | None:
        """Return the mean image of the training split, (H, W, C) float32; None where it was not asked for."""
        if not self.manifest.mean:
            return None
        return np.load(self.folder / self.manifest.mean, allow_pickle=False)

    # ---- the test split

    def count_opening(self, reason: str, now: float | None = None) -> int:
        """Record an evaluation on the test split; return how many there were.

        Args:
            reason: who and what for, one sentence.
            now: seconds since 1970.

        Raises:
            StorageError: if it cannot be recorded: there is no use without a record.
        """
        path = self.folder / OPENINGS_NAME
        line = json.dumps({"time": time.time() if now is None else now, "reason": reason}, ensure_ascii=False)
        with storage_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return len(self.openings())

    def openings(self) -> list[dict[str, Any]]:
        """Return when and what for the test split was opened, oldest first."""
        path = self.folder / OPENINGS_NAME
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]

    def close(self) -> None:
        """Close its files."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        if "catalogue" in self.__dict__:
            self.catalogue.close()
            del self.__dict__["catalogue"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
