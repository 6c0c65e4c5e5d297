"""Facts on all samples that the checks share, about 90 bytes per sample, and conversion of positions to findings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ziggurat.datasets.catalogue import Entry
from ziggurat.datasets.checks.report import Case, CheckLimits, Finding, Severity
from ziggurat.datasets.dataset import Dataset

__all__ = ["Facts"]


class Facts:
    """The samples of a dataset in the order of its catalog; a place is a number in that order.

    Args:
        dataset: to look at.
        limits: of the checks.

    Attributes:
        numbers: (N,) int64 in the catalog.
        splits: (N,) int8, places in ``dataset.splits``.
        rows: (N,) int64 in the split.
        classes: (N,) int32, -1 for none.
        contents: (N,) 16 bytes, hash of the first part as it came; ``known_contents`` says where there is one.
        labels: (N,) int64 digests of the labels; of objects, only their classes: two people draw two boxes.
    """

    def __init__(self, dataset: Dataset, limits: CheckLimits) -> None:
        self.dataset, self.limits = dataset, limits
        catalogue = dataset.catalogue
        self.numbers = catalogue.column("number")
        names = catalogue.texts("split")
        place_of = np.array([dataset.splits.index(name) if name in dataset.splits else -1 for name in names], np.int8)
        self.splits = place_of[catalogue.column("split")] if len(self.numbers) else np.zeros(0, np.int8)
        self.rows = catalogue.column("row")
        self.classes = catalogue.column("class")
        self.contents = np.zeros(len(self.numbers), "V16")
        self.known_contents = np.zeros(len(self.numbers), bool)
        self.labels = np.zeros(len(self.numbers), np.int64)

    def walk(self, look: Callable[[int, Entry], None]) -> None:
        """Read the catalog once: note contents and labels, and show each entry with its place to ``look``."""
        for place, entry in enumerate(self.dataset.catalogue.walk()):
            if entry.content_hash is not None:
                self.contents[place] = np.void(entry.content_hash)
                self.known_contents[place] = True
            self.labels[place] = _digest(entry.label if entry.objects is None else _classes(entry.label))
            look(place, entry)

    def column(self, name: str) -> np.ndarray:
        """Return a column of the catalog."""
        return self.dataset.catalogue.column(name)

    def groups(self) -> np.ndarray | None:
        """Return the number of the group of each sample, -1 for none; None where no sample has one."""
        texts = self.dataset.catalogue.texts("group")
        if not any(texts):
            return None
        groups = self.column("group")
        return np.where(groups == texts.index(""), -1, groups) if "" in texts else groups

    def keys(self, places: np.ndarray) -> list[str]:
        """Return the keys of samples."""
        return [entry.key for entry in self.dataset.catalogue.entries(self.numbers[places].tolist())]

    def cases(self, places: np.ndarray, notes: Mapping[int, str] | None = None) -> tuple[Case, ...]:
        """Return the first of some samples, with what is noted of each place."""
        shown = np.asarray(places, np.int64)[: self.limits.most_cases]
        return tuple(
            Case(key=key, split=self.split(place), row=int(self.rows[place]), note=(notes or {}).get(place, ""))
            for key, place in zip(self.keys(shown), shown.tolist(), strict=True)
        )

    def split(self, place: int) -> str:
        """Return the split of a sample."""
        return self.dataset.splits[self.splits[place]]

    def by_split(self, places: np.ndarray) -> dict[str, tuple[int, ...]]:
        """Return split → rows in order, of samples."""
        places = np.asarray(places, np.int64)
        found = {}
        for number, split in enumerate(self.dataset.splits):
            rows = np.unique(self.rows[places[self.splits[places] == number]])
            if len(rows):
                found[split] = tuple(rows.tolist())
        return found

    def finding(
        self,
        kind: str,
        severity: Severity,
        places: np.ndarray,
        text: str,
        advice: str = "",
        *,
        notes: Mapping[int, str] | None = None,
        exclude: np.ndarray | None = None,
    ) -> Finding:
        """Return a finding on samples; ``exclude`` are those to leave out, by default all of them."""
        return Finding(
            kind=kind,
            severity=severity,
            count=len(places),
            text=text,
            advice=advice,
            cases=self.cases(places, notes),
            exclude=self.by_split(places if exclude is None else exclude),
        )


def _digest(label: Any) -> int:
    if type(label) is int:
        return label
    return int.from_bytes(hashlib.blake2b(repr(label).encode(), digest_size=8).digest(), "big", signed=True)


def _classes(objects: list[dict[str, Any]]) -> list[int]:
    return sorted(each["class"] for each in objects)
