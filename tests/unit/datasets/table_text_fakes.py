"""Shared parts of the table and text tests: an in-memory dataset, and complete scans."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.importer import Importer
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.schema import Schema

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


class MemoryDataset(Dataset):
    """A dataset whose samples are those of a scan, as an exporter sees it."""

    def __init__(self, schema: Schema, samples: Sequence[Sample]) -> None:
        self._schema = schema
        self._samples = samples

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def kind(self) -> str:
        return self._schema.kind

    @property
    def splits(self) -> tuple[str, ...]:
        found = {sample.split or "train" for sample in self._samples}
        return tuple(split for split in ("train", "val", "test") if split in found)

    def samples(self, split: str | None = None) -> Iterator[StoredSample]:
        for name in self.splits if split is None else (split,):
            rows = [sample for sample in self._samples if (sample.split or "train") == name]
            for row, sample in enumerate(rows):
                yield StoredSample(key=sample.key, split=name, row=row, parts=sample.parts, label=sample.label)


class Scanned:
    """A source that was scanned to its end."""

    def __init__(self, importer: Importer, source: Path, **options: Any) -> None:
        scan = importer.scan(source, importer.checked_options(options))
        found = list(scan)
        self.samples = [each for each in found if isinstance(each, Sample)]
        self.problems = [each for each in found if isinstance(each, Problem)]
        self.schema = scan.schema

    @property
    def labels(self) -> list[Any]:
        return [sample.label for sample in self.samples]

    @property
    def keys(self) -> list[str]:
        return [sample.key for sample in self.samples]

    @property
    def rows(self) -> list[list[Any]]:
        return [json.loads(sample.parts[0]) for sample in self.samples]

    @property
    def texts(self) -> list[str]:
        return [bytes(sample.parts[0]).decode() for sample in self.samples if isinstance(sample.parts[0], bytes)]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.schema.columns}

    def reasons(self, kind: str) -> list[str]:
        return [problem.reason for problem in self.problems if problem.kind == kind]

    def dataset(self) -> MemoryDataset:
        return MemoryDataset(self.schema, self.samples)

    def catalogue(self, path: Path) -> Catalogue:
        return catalogue_of(path, self.schema, self.samples, self.problems)


def catalogue_of(path: Path, schema: Schema, samples: Sequence[Sample], problems: Sequence[Problem] = ()) -> Catalogue:
    """Write the catalog of a scan and open it."""
    with CatalogueWriter(path) as writer:
        for number, sample in enumerate(samples):
            writer.add(Entry.of_sample(number, sample))
        for problem in problems:
            writer.add_problem(problem)
        writer.note("schema", schema.as_json())
    return Catalogue(path)
