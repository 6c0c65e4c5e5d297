"""Writing of a version: shared stores, what differs from them, the catalog, the mean, and last the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat import __version__
from ziggurat.atomic import storage_errors
from ziggurat.datasets.catalogue import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.dataset import OPENINGS_NAME
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.datasets.versions.draft import Draft, Origin, in_order
from ziggurat.datasets.versions.folder import VersionFolder
from ziggurat.datasets.versions.joining import joined_image, joined_source
from ziggurat.datasets.versions.mean import version_mean
from ziggurat.datasets.versions.survey import Survey
from ziggurat.errors import DataError, UsageError
from ziggurat.records.manifest import Manifest, Parent, SplitNote, StoreNote

__all__ = ["write_version"]

_INDEX_NAME: Final = "index.sqlite"
_MEAN_NAME: Final = "mean.npy"
_PAGE: Final = 1000
_TEST: Final = SPLITS.index("test")


def write_version(draft: Draft, folder: Path, name: str, survey: Survey | None) -> Manifest:
    """Write a draft as a dataset; return its manifest.

    Args:
        draft: what it is.
        folder: to make.
        name: what people call it.
        survey: of joined datasets, with their duplicates.

    Raises:
        UsageError: where no sample is left.
        StorageError: where something stands at ``folder``, or the disk is full or refuses; nothing stays behind.
    """
    if (draft.splits < 0).all():
        raise UsageError("A dataset has at least one sample.", received="changes that leave all out")
    datasets = [origin.dataset for origin in draft.origins]
    with VersionFolder(folder) as work, storage_errors(folder):
        _write_catalogue(draft, work.path / _INDEX_NAME, problems := _Problems(draft, survey))
        mean, pixel_mean = version_mean(draft)
        if mean is not None:
            np.save(work.path / _MEAN_NAME, mean, allow_pickle=False)
        _copy_openings(draft, work.path)
        return Manifest(
            name=name,
            schema=draft.schema,
            splits={split: _write_split(draft, place, work) for place, split in _used(draft)},
            image=joined_image(datasets),
            mean="" if mean is None else _MEAN_NAME,
            pixel_mean=pixel_mean,
            index=_INDEX_NAME,
            source=joined_source(datasets),
            spec=datasets[0].manifest.spec if len(datasets) == 1 else {},
            problems=dict(sorted(problems.counts.items())),
            parents=tuple(
                Parent(id=each.manifest.id, name=each.name, changes=tuple(draft.sentences)) for each in datasets
            ),
            release=__version__,
        ).save(work.path)


def _used(draft: Draft) -> Iterator[tuple[int, str]]:
    for place, split in enumerate(SPLITS):
        if (draft.splits == place).any():
            yield place, split


# ---- catalog


class _Problems:
    """The problems of a version, and how many there are of each kind."""

    def __init__(self, draft: Draft, survey: Survey | None) -> None:
        self._draft = draft
        self._survey = survey
        self.counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[Problem]:
        for problem in self._all():
            self.counts[problem.kind] = self.counts.get(problem.kind, 0) + 1
            yield problem

    def _all(self) -> Iterator[Problem]:
        for origin in self._draft.origins:
            yield from _old_problems(origin)
        if self._survey is not None:
            yield from self._survey.problems()
        for numbers, kind, reason in self._draft.left_out:
            for origin in self._draft.origins:
                inside = numbers[(numbers >= origin.first) & (numbers < origin.first + len(origin))]
                for key in self._draft.keys(inside, origin):
                    yield Problem(key=key, kind=kind, reason=reason, left_out=True)


def _old_problems(origin: Origin) -> Iterator[Problem]:
    catalogue, offset = origin.dataset.catalogue, 0
    while page := catalogue.problems(offset=offset, limit=_PAGE):
        for problem in page:
            yield replace(problem, key=origin.prefix + problem.key)
        offset += len(page)


def _write_catalogue(draft: Draft, path: Path, problems: _Problems) -> None:
    with CatalogueWriter(path) as catalogue:
        for problem in problems:
            catalogue.add_problem(problem)
        number = 0
        for place, split in _used(draft):
            row = 0
            for block in _blocks(draft, place):
                for entry, label in draft.labelled(block.numbers, block.origin):
                    key = block.origin.prefix + entry.key
                    catalogue.add(_placed(entry, key=key, label=label, number=number, split=split, row=row))
                    number, row = number + 1, row + 1


def _placed(entry: Entry, *, key: str, label: Any, number: int, split: str, row: int) -> Entry:
    return replace(
        entry,
        number=number,
        split=split,
        row=row,
        key=key,
        label=label,
        class_number=label if type(label) is int else None,
        objects=len(label) if entry.objects is not None and isinstance(label, list) else None,
    )


# ---- records


@dataclass(frozen=True)
class _Block:
    """The samples of a new split that come from one split of one dataset.

    Args:
        origin: the dataset.
        place: the split there.
        numbers: (n,) of the samples in the draft, by row there.
        rows: (n,) their rows there.
    """

    origin: Origin
    place: int
    numbers: np.ndarray
    rows: np.ndarray


def _blocks(draft: Draft, place: int) -> Iterator[_Block]:
    """Yield the samples of a new split: dataset by dataset, split by split, row by row."""
    for origin in draft.origins:
        for old in range(len(SPLITS)):
            numbers = origin.first + in_order(origin, old)
            rows = np.flatnonzero(draft.splits[numbers] == place)
            if len(rows):
                yield _Block(origin, old, numbers[rows], rows)


def _write_split(draft: Draft, place: int, work: VersionFolder) -> SplitNote:
    split = SPLITS[place]
    stores: list[StoreNote] = []
    blocks = list(_blocks(draft, place))
    places = [_places_of(block, stores, work) for block in blocks]
    rows = np.concatenate(places) if places else np.zeros(0, np.int64)
    has_rows = not np.array_equal(rows, np.arange(sum(store.count for store in stores)))
    if has_rows:
        np.save(work.path / f"{split}.rows.npy", rows, allow_pickle=False)
    changed = _write_labels(draft, blocks, work.path / f"{split}.labels.jsonl")
    with Catalogue(work.path / _INDEX_NAME) as catalogue:
        counts = catalogue.class_counts(split)
    return SplitNote(
        count=len(rows),
        stores=tuple(stores),
        rows=f"{split}.rows.npy" if has_rows else "",
        labels=f"{split}.labels.jsonl" if changed else "",
        class_counts=tuple(counts.get(number, 0) for number in range(max(counts, default=-1) + 1)),
    )


def _places_of(block: _Block, stores: list[StoreNote], work: VersionFolder) -> np.ndarray:
    """Return the number of each sample's record in ``stores``, (n,) int64; missing stores are brought and added."""
    dataset = block.origin.dataset
    note = dataset.manifest.splits[SPLITS[block.place]]
    records = block.rows.astype(np.int64)
    if note.rows:
        records = np.load(dataset.folder / note.rows, allow_pickle=False)[records]
    places = np.empty(len(records), np.int64)
    first = 0
    for store in note.stores:
        inside = (records >= first) & (records < first + store.count)
        if inside.any():
            brought = work.bring(dataset.folder, store, prefix=block.origin.prefix)
            if brought not in stores:
                stores.append(brought)
            before = sum(each.count for each in stores[: stores.index(brought)])
            places[inside] = before + records[inside] - first
        first += store.count
    return places


def _write_labels(draft: Draft, blocks: list[_Block], path: Path) -> bool:
    """Write the labels that are not those in the records; return whether there are any."""
    row = 0
    with path.open("w", encoding="utf-8") as file:
        for block in blocks:
            changed = np.isin(block.rows, _changed_before(block))
            if not changed.any() and not _may_differ(draft, block):
                row += len(block.rows)
                continue
            labelled = draft.labelled(block.numbers, block.origin)
            for before, (entry, label) in zip(changed.tolist(), labelled, strict=True):
                if before or label != entry.label:
                    file.write(json.dumps([row, label], ensure_ascii=False) + "\n")
                row += 1
        written = file.tell() > 0
    if not written:
        path.unlink()
    return written


def _may_differ(draft: Draft, block: _Block) -> bool:
    """Return whether somebody gave labels to some of the samples, or the classes have other numbers."""
    classes = block.origin.classes
    given = np.isin(block.numbers, list(draft.labels)).any()
    return bool(given) or not np.array_equal(classes, np.arange(len(classes)))


def _changed_before(block: _Block) -> np.ndarray:
    """Return the rows of the old split whose labels were not those in the records, (n,) int64."""
    dataset = block.origin.dataset
    note = dataset.manifest.splits[SPLITS[block.place]]
    if not note.labels:
        return np.zeros(0, np.int64)
    path = dataset.folder / note.labels
    try:
        with path.open(encoding="utf-8") as file:
            return np.fromiter((json.loads(line)[0] for line in file), np.int64)
    except (OSError, ValueError, TypeError) as error:
        raise DataError("The changed labels of a split are read as written.", received=f"`{path}`: {error}") from None


def _copy_openings(draft: Draft, folder: Path) -> None:
    """Keep who saw the test split: what was measured on its samples was measured, also after a change."""
    opened = [origin for origin in draft.origins if _gives_test_samples(draft, origin)]
    lines = [json.dumps(line, ensure_ascii=False) + "\n" for origin in opened for line in origin.dataset.openings()]
    if lines:
        (folder / OPENINGS_NAME).write_text("".join(lines), "utf-8")


def _gives_test_samples(draft: Draft, origin: Origin) -> bool:
    now = draft.splits[origin.first : origin.first + len(origin)]
    return bool(((now == _TEST) & (origin.splits == _TEST)).any())
