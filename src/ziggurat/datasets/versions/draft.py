"""Draft of a dataset version: its samples, their splits, classes and labels, and the changes applied to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.versions.classes import renumbered
from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.base import RecordIndexError
from ziggurat.records.schema import Schema

__all__ = [
    "LEFT_OUT",
    "Change",
    "CorrectObjects",
    "Draft",
    "DropClass",
    "Exclude",
    "KeepClasses",
    "MergeClasses",
    "Move",
    "NameClasses",
    "Origin",
    "Relabel",
    "RenameClass",
    "Resplit",
    "in_order",
]

LEFT_OUT: Final = -1
_BLOCK: Final = 1000
_NOT_GIVEN: Final = object()  # None is a label that a change may give

Samples = Sequence[int] | Sequence[str] | np.ndarray
"""Rows of a split, from 0, or keys."""


@dataclass
class Origin:
    """One dataset that a version is made of.

    Args:
        dataset: it.
        first: number of its first sample in the draft.
        splits: (N,) int8 split of each sample, a place in ``SPLITS``, in the order of the catalog.
        rows: (N,) int32 row of each sample in its split.
        numbers: (N,) int32 number of each sample in its catalog; some may be missing in between.
        classes: (K,) int32 number of each of its classes in the draft, -1 for one that is left out.
        prefix: before its keys, where they would name samples of others too.
    """

    dataset: Dataset
    first: int
    splits: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray
    classes: np.ndarray
    prefix: str = ""

    def __len__(self) -> int:
        return len(self.splits)

    @classmethod
    def of(cls, dataset: Dataset, first: int) -> Origin:
        """Read where the samples of a dataset are.

        Raises:
            DataError: where the catalog has other samples than the manifest says.
        """
        catalog = dataset.catalogue
        places = np.array([SPLITS.index(name) if name in SPLITS else LEFT_OUT for name in catalog.texts("split")])
        splits = places[catalog.column("split")].astype(np.int8) if len(catalog) else np.zeros(0, np.int8)
        origin = cls(
            dataset=dataset,
            first=first,
            splits=splits,
            rows=catalog.column("row").astype(np.int32),
            numbers=catalog.column("number").astype(np.int32),
            classes=np.arange(len(dataset.schema.class_names), dtype=np.int32),
        )
        counts = {name: int(np.count_nonzero(splits == place)) for place, name in enumerate(SPLITS)}
        if any(counts[name] != note.count for name, note in dataset.manifest.splits.items()) or LEFT_OUT in splits:
            raise DataError(
                f"The catalog `{catalog.path}` has {len(catalog)} of {len(dataset)} samples, other ones than "
                "its manifest counts.",
                advice="Create the dataset again, or bring the file back.",
            )
        return origin


class Draft:
    """A version in the making; at first it is what its datasets are, one after the other.

    Args:
        origins: that it is made of.
        schema: that it begins with.
    """

    def __init__(self, origins: Sequence[Origin], schema: Schema) -> None:
        self.origins = tuple(origins)
        self.schema = schema
        self.splits = np.concatenate([origin.splits for origin in origins])
        """(N,) int8 split of each sample, or ``LEFT_OUT``."""
        self.labels: dict[int, Any] = {}
        """Sample → its changed label."""
        self.sentences: list[str] = []
        """What was done."""
        self.left_out: list[tuple[np.ndarray, str, str]] = []
        """Samples, kind of problem, and reason."""

    def numbers(self, split: str, samples: Samples) -> np.ndarray:
        """Return the numbers of samples in the draft, (n,) int64.

        Args:
            split: that they were in before all changes.
            samples: rows or keys.

        Raises:
            UnknownNameError: where there is no such split.
            RecordIndexError: where the split has no such row.
            DataError: where there is no such key in it, or a row is no whole number.
        """
        place = self.place_of(split)
        if len(samples) and isinstance(samples[0], str):
            return np.array([self._number_of_key(place, str(key)) for key in samples], np.int64)
        rows = np.asarray(samples)
        if not len(rows):
            return np.zeros(0, np.int64)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise DataError("Samples are chosen by rows or by keys.", received=f"{rows.dtype} {rows.shape}")
        inside = np.concatenate([origin.first + in_order(origin, place) for origin in self.origins])
        wrong = rows[(rows < 0) | (rows >= len(inside))]
        if len(wrong):
            raise RecordIndexError(f"There is no row {wrong[0]} in the split {split} of {len(inside)} samples.")
        return inside[rows]

    def place_of(self, split: str) -> int:
        """Return the place in ``SPLITS`` of a split that some of the datasets have."""
        known = [name for name in SPLITS if any(name in origin.dataset.manifest.splits for origin in self.origins)]
        if split not in known:
            raise UnknownNameError("split", split, known)
        return SPLITS.index(split)

    def leave_out(self, numbers: np.ndarray, kind: str, reason: str) -> int:
        """Leave samples out that are still in; return how many they are."""
        still = np.unique(numbers[self.splits[numbers] != LEFT_OUT])
        self.splits[still] = LEFT_OUT
        if len(still):
            self.left_out.append((still, kind, reason))
        return len(still)

    def renumber(self, schema: Schema, numbers: np.ndarray) -> None:
        """Take other classes.

        Args:
            schema: with the new classes.
            numbers: (K,) the new number of each class so far, or -1.
        """
        self.schema = schema
        if not len(numbers):
            return
        for origin in self.origins:
            origin.classes = np.where(origin.classes < 0, origin.classes, numbers[origin.classes]).astype(np.int32)
        self.labels = {number: renumbered(label, numbers) for number, label in self.labels.items()}

    def key(self, number: int) -> str:
        """Return the key of a sample."""
        origin = next(origin for origin in reversed(self.origins) if origin.first <= number)
        return next(self.keys(np.array([number]), origin))

    def keys(self, numbers: np.ndarray, origin: Origin) -> Iterator[str]:
        """Yield the keys of samples, as they are in the draft.

        Args:
            numbers: (n,) of the samples in the draft.
            origin: that they all come from.
        """
        for entry, _ in self.labelled(numbers, origin):
            yield origin.prefix + entry.key

    def labelled(self, numbers: np.ndarray, origin: Origin) -> Iterator[tuple[Entry, Any]]:
        """Yield what the catalog of an origin knows of its samples, and their labels in the draft."""
        for start in range(0, len(numbers), _BLOCK):
            block = numbers[start : start + _BLOCK]
            found = origin.dataset.catalogue.entries(origin.numbers[block - origin.first].tolist())
            for number, entry in zip(block.tolist(), found, strict=True):
                given = self.labels.get(number, _NOT_GIVEN)
                yield entry, renumbered(entry.label, origin.classes) if given is _NOT_GIVEN else given

    def _number_of_key(self, place: int, key: str) -> int:
        elsewhere = ""
        for origin in self.origins:
            if not key.startswith(origin.prefix):
                continue
            entry = origin.dataset.catalogue.find(key.removeprefix(origin.prefix))
            if entry is not None and entry.split == SPLITS[place]:
                return origin.first + int(in_order(origin, place)[entry.row])
            elsewhere = elsewhere if entry is None else f", which is in split {entry.split}"
        raise DataError(
            f"The key {key!r}{elsewhere}{',' if elsewhere else ''} is not in the split {SPLITS[place]}.",
            advice="Keys are those that the catalog shows.",
        )


def in_order(origin: Origin, place: int) -> np.ndarray:
    """Return the places in the catalog of the samples of a split, (n,) integers, by row."""
    inside = np.flatnonzero(origin.splits == place)
    rows = origin.rows[inside]
    return inside if np.array_equal(rows, np.arange(len(inside))) else inside[np.argsort(rows)]


@dataclass(frozen=True)
class Relabel:
    """Give samples another label.

    Args:
        split: that they are in.
        samples: their rows or keys.
        label: in the form that the kind says (``ziggurat.records.schema``); a class also by its name.
    """

    split: str
    samples: Samples
    label: Any


@dataclass(frozen=True)
class CorrectObjects:
    """Give images other objects.

    Args:
        split: that they are in.
        labels: row → its objects, in the form of a label (``ziggurat.records.objects``).
        summary: what differs, such as ``3 added, 1 deleted``; for people.
    """

    split: str
    labels: Mapping[int, Sequence[Mapping[str, Any]]]
    summary: str = ""


@dataclass(frozen=True)
class Exclude:
    """Leave samples out.

    Args:
        split: that they are in.
        samples: their rows or keys.
        reason: one sentence; the catalog lists it under the kind ``excluded``.
    """

    split: str
    samples: Samples
    reason: str = ""


@dataclass(frozen=True)
class Move:
    """Move samples to another split.

    Args:
        split: that they are in.
        samples: their rows or keys.
        to: ``train``, ``val`` or ``test``.
    """

    split: str
    samples: Samples
    to: str


@dataclass(frozen=True, eq=False)
class Resplit:
    """Divide the samples anew.

    Args:
        splits: (N,) place in ``ziggurat.datasets.samples.SPLITS`` of every sample in the order of the catalog, -1
            for one that is left out, as ``ziggurat.datasets.splitting`` assigns them.
    """

    splits: np.ndarray


@dataclass(frozen=True)
class RenameClass:
    """Give a class another name.

    Args:
        name: as it is.
        new_name: as it shall be; no other class has it.
    """

    name: str
    new_name: str


@dataclass(frozen=True)
class NameClasses:
    """Give all classes their names, and those of masks their colors.

    Args:
        names: by class number.
        colours: (R, G, B) of each class; empty: they stay.
    """

    names: Sequence[str]
    colours: Sequence[tuple[int, int, int]] = ()


@dataclass(frozen=True)
class MergeClasses:
    """Make one class of several.

    Args:
        names: of the classes.
        into: name of the class that they become: one of all the classes there are, or a new one.
    """

    names: Sequence[str]
    into: str


@dataclass(frozen=True)
class DropClass:
    """Leave a class out: its samples, or in a detection set its objects.

    Args:
        name: of the class.
    """

    name: str


@dataclass(frozen=True)
class KeepClasses:
    """Leave all other classes out.

    Args:
        names: of the classes that stay; their order does not change.
    """

    names: Sequence[str]


Change = (
    Relabel
    | CorrectObjects
    | Exclude
    | Move
    | Resplit
    | RenameClass
    | NameClasses
    | MergeClasses
    | DropClass
    | KeepClasses
)
"""Anything that makes a new version."""
