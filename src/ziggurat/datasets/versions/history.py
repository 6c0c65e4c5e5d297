"""History of a dataset: the versions that it was made from, and the differences between two datasets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions.joining import key_number
from ziggurat.errors import DataError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.records.schema import Schema

__all__ = ["Differences", "VersionNote", "differences", "history"]

_LISTED: Final = 1000


@dataclass(frozen=True, kw_only=True)
class VersionNote:
    """One version in a history.

    Args:
        id: of its manifest.
        name: what people call it.
        folder: where it is; None where it was not found, because it was deleted or is elsewhere.
        changes: what was done to its parents to make it, one sentence each; empty for a dataset from a source.
        parents: ids of the versions that it was made of.
    """

    id: str
    name: str
    folder: Path | None
    changes: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What differs between two datasets, by key; each list has the first of them, ``counts`` how many there are.

    Args:
        added: only the second has them.
        removed: only the first has them.
        moved: they are in another split.
        relabeled: they have another label; classes are compared by their names.
        replaced: their content is another.
        classes_added: names of classes that only the second has.
        classes_removed: names of classes that only the first has.
        counts: name of each list of samples → how many there are.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    relabelled: tuple[str, ...]
    replaced: tuple[str, ...]
    classes_added: tuple[str, ...]
    classes_removed: tuple[str, ...]
    counts: dict[str, int]


def history(folder: str | os.PathLike[str], among: Sequence[str | os.PathLike[str]] | None = None) -> list[VersionNote]:
    """Return a version and all that it came from, newest first.

    Args:
        folder: of the version.
        among: folders of datasets, or folders that hold some; None for the folder that the version is in. Versions are
            found by id, whatever their folders are called.

    Raises:
        DataError: where the folder holds no finished dataset.
    """
    start = Path(folder)
    places = [start.absolute().parent] if among is None else [Path(place) for place in among]
    known = {manifest.id: (manifest, path) for path, manifest in _manifests(places)}
    manifest = Manifest.load(start)
    known[manifest.id] = (manifest, start)
    notes: dict[str, VersionNote] = {}
    waiting = [(manifest.id, manifest.name)]
    while waiting:
        version, name = waiting.pop(0)
        if version in notes:
            continue
        if version not in known:
            notes[version] = VersionNote(id=version, name=name, folder=None)
            continue
        manifest, path = known[version]
        notes[version] = VersionNote(
            id=version,
            name=manifest.name,
            folder=path,
            changes=tuple(dict.fromkeys(change for parent in manifest.parents for change in parent.changes)),
            parents=tuple(parent.id for parent in manifest.parents),
        )
        waiting += [(parent.id, parent.name) for parent in manifest.parents]
    return list(notes.values())


def differences(one: Dataset, other: Dataset, *, at_most: int = _LISTED) -> Differences:
    """Return what differs between two datasets; costs 33 bytes a sample, and sorting.

    Args:
        one: the older.
        other: the newer.
        at_most: how many keys each list has.
    """
    before, after = _Facts(one), _Facts(other)
    _, ours, theirs = np.intersect1d(before.keys, after.keys, assume_unique=True, return_indices=True)
    by_place = np.argsort(theirs)
    ours, theirs = ours[by_place], theirs[by_place]
    found = {
        "added": (other, after.numbers[~np.isin(after.keys, before.keys)]),
        "removed": (one, before.numbers[~np.isin(before.keys, after.keys)]),
        "moved": (other, after.numbers[theirs[before.splits[ours] != after.splits[theirs]]]),
        "relabelled": (other, after.numbers[theirs[before.labels[ours] != after.labels[theirs]]]),
        "replaced": (other, after.numbers[theirs[before.contents[ours] != after.contents[theirs]]]),
    }
    names = {name: _keys(dataset, numbers[:at_most]) for name, (dataset, numbers) in found.items()}
    old, new = one.schema.class_names, other.schema.class_names
    return Differences(
        **names,
        classes_added=tuple(name for name in new if name not in old),
        classes_removed=tuple(name for name in old if name not in new),
        counts={name: len(numbers) for name, (_, numbers) in found.items()},
    )


class _Facts:
    """What is compared: 64 bits of each key, label and content, and the split."""

    def __init__(self, dataset: Dataset) -> None:
        count = len(dataset.catalogue)
        self.numbers = dataset.catalogue.column("number")
        self.keys, self.labels, self.contents = (np.zeros(count, np.uint64) for _ in range(3))
        self.splits = np.zeros(count, np.int8)
        splits: dict[str, int] = {"train": 0, "val": 1, "test": 2}
        for place, entry in enumerate(dataset.catalogue.walk()):
            self.keys[place] = key_number(entry.key)
            self.labels[place] = _label_number(entry, dataset.schema)
            self.contents[place] = int.from_bytes((entry.content_hash or b"")[:8], "big")
            self.splits[place] = splits[entry.split]


def _label_number(entry: Entry, schema: Schema) -> int:
    def named(number: Any) -> Any:
        return schema.class_names[number] if 0 <= number < len(schema.class_names) else number

    label: Any = entry.label
    if entry.objects is not None and isinstance(label, list):
        label = [each | {"class": named(each["class"])} for each in label]
    elif type(label) is int:
        label = named(label)
    return key_number(json.dumps(label, sort_keys=True))


def _keys(dataset: Dataset, numbers: np.ndarray) -> tuple[str, ...]:
    return tuple(entry.key for entry in dataset.catalogue.entries(numbers.tolist()))


def _manifests(places: Sequence[Path]) -> Iterator[tuple[Path, Manifest]]:
    for place in places:
        for folder in [place, *sorted(path for path in place.glob("*") if path.is_dir())]:
            if folder.name.startswith(".") or not (folder / MANIFEST_NAME).is_file():
                continue
            try:
                yield folder, Manifest.load(folder)
            except DataError:  # another, damaged dataset must not hide this one
                continue
