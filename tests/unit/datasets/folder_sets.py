"""Shared parts of the folder and list tests: image files, complete scans, an in-memory dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.importer import Importer
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.schema import Schema

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def picture(number: int = 0, suffix: str = ".png") -> bytes:
    """Return the content of a small image file."""
    return cv2.imencode(suffix, np.full((4, 6, 3), number % 256, np.uint8))[1].tobytes()


def put(root: Path, *paths: str) -> Path:
    """Write an image at each path, and return the folder."""
    for number, path in enumerate(paths):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(number, file.suffix.lower()))
    return root


class Scanned:
    """A source that was scanned to its end; twice, to see that it gives the same again."""

    def __init__(self, importer: Importer, source: Path, **options: Any) -> None:
        first, second = (importer.scan(source, importer.checked_options(options)) for _ in range(2))
        found = list(first)
        assert found == list(second)
        self.samples = [each for each in found if isinstance(each, Sample)]
        self.problems = [each for each in found if isinstance(each, Problem)]
        self.schema = first.schema

    @property
    def labels(self) -> dict[str, Any]:
        """Key → label."""
        return {sample.key: sample.label for sample in self.samples}

    @property
    def splits(self) -> dict[str, str]:
        """Key → split."""
        return {sample.key: sample.split for sample in self.samples}

    @property
    def classes(self) -> dict[str, str]:
        """Key → name of the class."""
        return {key: self.schema.class_names[label] for key, label in self.labels.items()}

    @property
    def listed(self) -> dict[str, str]:
        """Key → kind of the problem."""
        return {problem.key: problem.kind for problem in self.problems}


class MemoryDataset(Dataset):
    """What exporters see of a dataset: split → (key, image, label)."""

    def __init__(self, schema: Schema, content: Mapping[str, list[tuple[str, bytes, Any]]]) -> None:
        self._schema = schema
        self._content = content

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def kind(self) -> str:
        return self._schema.kind

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._content)

    def size(self, split: str) -> int:
        return len(self._content[split])

    def sample(self, split: str, row: int) -> StoredSample:
        key, content, label = self._content[split][row]
        return StoredSample(key=key, split=split, row=row, parts=(content,), label=label)
