"""Writing of a version: shared stores, what differs from them, the catalog, the mean, and last the manifest."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from ziggurat import __version__
from ziggurat.atomic import folder_mode, storage_errors, sync_path
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.dataset import OPENINGS_NAME
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.datasets.versions.draft import Draft, Origin, in_order
from ziggurat.datasets.versions.joining import Survey, joined_image, joined_source
from ziggurat.errors import DataError, DatapointError, StorageError, UsageError
from ziggurat.records.manifest import Manifest, Parent, SplitNote, StoreNote
from ziggurat.records.stores import create_records, open_records
from ziggurat.records.tfrecord import index_path

__all__ = ["write_version"]

_BLOCK_BYTES: Final = 1 << 20

_TRAIN = SPLITS.index("train")

_INDEX_NAME: Final = "index.sqlite"
_MEAN_NAME: Final = "mean.npy"
_PAGE: Final = 1000  # entries that are read at once
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
        raise UsageError("The changes leave all samples out.")
    datasets = [origin.dataset for origin in draft.origins]
    with VersionFolder(folder) as work, storage_errors(folder):
        _write_catalog(draft, work.path / _INDEX_NAME, problems := _Problems(draft, survey))
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
            rules=min(each.manifest.rules for each in datasets),
        ).save(work.path)


def _used(draft: Draft) -> Iterator[tuple[int, str]]:
    for place, split in enumerate(SPLITS):
        if (draft.splits == place).any():
            yield place, split


class VersionFolder:
    """A folder in the making; use it in a ``with`` statement, at whose end it gets its name or is deleted.

    A process that is killed leaves ``.NAME.partial-…`` beside, which is no dataset and which any process may
    delete.

    Args:
        final: the folder's name when it is whole.

    Raises:
        StorageError: where something stands at ``final``, or the disk is full or refuses (also from every method).
    """

    def __init__(self, final: Path) -> None:
        self.final = final
        if os.path.lexists(final):
            raise _occupied(final)
        self.path = final.parent / f".{final.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
        self._brought: dict[tuple[str, str], StoreNote] = {}
        with storage_errors(final):
            self.path.mkdir(parents=True, mode=folder_mode(final.parent))

    def bring(self, folder: Path, store: StoreNote, *, prefix: str = "") -> StoreNote:
        """Bring a store of another dataset here, once; return its note.

        Args:
            folder: of the other dataset.
            store: its note there.
            prefix: put before its keys; the records are written anew then, as keys stand in the store.

        Raises:
            DataError: where the file is not there, or not of the size that its note says.
        """
        asked = (store.sha256, prefix)
        if asked not in self._brought:
            source = folder / store.path
            if not source.is_file() or source.stat().st_size != store.size_bytes:
                raise DataError(
                    f"`{source}` is "
                    f"{'of another size than when it was written' if source.is_file() else 'not there'}, so no "
                    "version can be made of its dataset.",
                    advice="Bring it back, or create the dataset again.",
                )
            target = self._free(store.path)
            with storage_errors(self.final):
                if prefix:
                    self._brought[asked] = _with_prefix(source, target, store, prefix, self.path)
                else:
                    share_file(source, target)
                    if index_path(source).exists():  # the side file of a TFRecord file
                        share_file(index_path(source), index_path(target))
                    name = target.relative_to(self.path).as_posix()
                    self._brought[asked] = replace(store, path=name)
        return self._brought[asked]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def _publish(self) -> None:
        with storage_errors(self.final):
            for path in [*self.path.rglob("*"), self.path]:
                sync_path(path)
            if os.path.lexists(self.final):
                raise _occupied(self.final)
            os.rename(self.path, self.final)  # fails if a dataset of that name was made meanwhile
            sync_path(self.final.parent)

    def _free(self, name: str) -> Path:
        """Return a path for a store of a name: its own, or where that is taken, one with a number."""
        wanted = self.path / name
        target, number = wanted, 1
        while target.exists():
            number += 1
            target = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
        with storage_errors(self.final):
            target.parent.mkdir(parents=True, exist_ok=True)
        return target


def share_file(source: Path, target: Path) -> None:
    """Give a file another name, or copy it where the file system does not permit that."""
    try:
        os.link(source, target)
    except OSError as refused:
        if refused.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        shutil.copyfile(source, target)


def _with_prefix(source: Path, target: Path, store: StoreNote, prefix: str, folder: Path) -> StoreNote:
    with open_records(source) as reader, create_records(target, store.record_format) as writer:
        for key, value in reader:
            writer.append(prefix + key, value)
    digest = hashlib.sha256()
    with target.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return StoreNote(
        path=target.relative_to(folder).as_posix(),
        record_format=store.record_format,
        count=store.count,
        size_bytes=target.stat().st_size,
        sha256=digest.hexdigest(),
    )


def _occupied(path: Path) -> StorageError:
    return StorageError(
        "A version is made in a folder that does not exist yet; nothing is ever overwritten.",
        received=f"`{path}`, which exists",
        advice="Choose another folder.",
        details={"path": str(path)},
    )


def version_mean(draft: Draft) -> tuple[np.ndarray | None, tuple[float, ...]]:
    """Return the mean image of the training split, (H, W, C) float32, and the mean pixel.

    Only images that came to the split or left it are decoded. Where a dataset has no mean image, there is none,
    and the mean pixel stays where the split has the samples that it had; the same holds where an image that left
    cannot be read any more.
    """
    changes = [_Change(draft, origin) for origin in draft.origins]
    first = draft.origins[0].dataset
    if len(changes) == 1 and not changes[0].came.size and not changes[0].left.size:
        return first.mean(), first.manifest.pixel_mean
    if not (draft.splits == _TRAIN).any():
        return None, ()
    try:
        total = _total(changes)
    except DatapointError:
        total = None
    if total is None:
        return None, ()
    mean = (total / np.count_nonzero(draft.splits == _TRAIN)).astype(np.float32)
    return mean, tuple(float(value) for value in mean.mean(axis=(0, 1), dtype=np.float64))


class _Change:
    """What happened to the training samples of one dataset."""

    def __init__(self, draft: Draft, origin: Origin) -> None:
        now = draft.splits[origin.first : origin.first + len(origin)] == _TRAIN
        before = origin.splits == _TRAIN
        self.origin = origin
        self.came = np.flatnonzero(now & ~before)
        self.left = np.flatnonzero(before & ~now)
        self.before = int(np.count_nonzero(before))

    def total(self) -> np.ndarray | None:
        """Return the sum of its images in the training split, (H, W, C) float64."""
        mean = self.origin.dataset.mean()
        if mean is None:
            return None
        total = np.rint(mean.astype(np.float64) * self.before)  # sums of uint8 pixels are whole numbers
        for places, sign in ((self.came, 1), (self.left, -1)):
            for image in self._images(places):
                if image.shape != total.shape:
                    return None
                total += sign * image.astype(np.float64)
        return total

    def _images(self, places: np.ndarray) -> Iterator[np.ndarray]:
        for place in places.tolist():
            split = SPLITS[self.origin.splits[place]]
            yield self.origin.dataset.picture(split, int(self.origin.rows[place]))


def _total(changes: list[_Change]) -> np.ndarray | None:
    total: np.ndarray | None = None
    for change in changes:
        if change.before == len(change.left) and not len(change.came):
            continue
        own = change.total()
        if own is None or (total is not None and own.shape != total.shape):
            return None
        total = own if total is None else total + own
    return total


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
    catalog, offset = origin.dataset.catalogue, 0
    while page := catalog.problems(offset=offset, limit=_PAGE):
        for problem in page:
            yield replace(problem, key=origin.prefix + problem.key)
        offset += len(page)


def _write_catalog(draft: Draft, path: Path, problems: _Problems) -> None:
    with CatalogueWriter(path) as catalog:
        for problem in problems:
            catalog.add_problem(problem)
        number = 0
        for place, split in _used(draft):
            row = 0
            for block in _blocks(draft, place):
                for entry, label in draft.labelled(block.numbers, block.origin):
                    key = block.origin.prefix + entry.key
                    catalog.add(_placed(entry, key=key, label=label, number=number, split=split, row=row))
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
    with Catalogue(work.path / _INDEX_NAME) as catalog:
        counts = catalog.class_counts(split)
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
    """Return whether labels of some samples were changed, or the classes have other numbers."""
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
