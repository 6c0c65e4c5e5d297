"""Last stage of dataset creation: chunks become the stores of the splits, the catalog and the mean, in one pass.

One process writes everything in the order of the scan. The bytes therefore do not depend on the number of
interruptions or processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation.chunk import ChunkFacts, ChunkPlan, read_facts, records_path
from ziggurat.datasets.creation.images import ImageSums
from ziggurat.datasets.creation.request import CreationStopped, Watch
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.datasets.splitting.leaks import LeakReport, find_leaks
from ziggurat.records.base import RecordWriter
from ziggurat.records.manifest import SplitNote, StoreNote
from ziggurat.records.stores import create_records, open_records
from ziggurat.records.tfrecord import index_path

__all__ = ["INDEX_NAME", "MEAN_NAME", "Assembled", "assemble"]

INDEX_NAME: Final = "index.sqlite"
MEAN_NAME: Final = "mean.npy"
_SAME: Final = {"text-classification": "the same text", "table": "the same row"}
_BLOCK: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What was put together.

    Args:
        splits: name → what is in it.
        problems: kind → how many.
        sums: of the images of the training split.
        stored_shape: (height, width, channels) of every first image; None in a place where they differ.
        leaks: samples of validation and test that training has seen; None where no hashes were computed.
        warnings: one sentence each.
    """

    splits: Mapping[str, SplitNote]
    problems: Mapping[str, int]
    sums: ImageSums
    stored_shape: tuple[int | None, int | None, int | None]
    leaks: LeakReport | None
    warnings: tuple[str, ...]


def assemble(
    folder: Path,
    plan: ChunkPlan,
    splits: np.ndarray,
    *,
    store: str,
    problems: Sequence[Problem],
    warnings: Sequence[str],
    watch: Watch,
) -> Assembled:
    """Write stores, catalog and mean.

    Args:
        folder: of the dataset.
        plan: of the chunks, all of which are done.
        splits: (N) int8, the split of each sample of the scan, -1 for one that is left out.
        store: ``lmdb`` or ``tfrecord``.
        problems: of the split.
        warnings: of the split.
        watch: is told of the progress.

    Raises:
        StorageError: where the disk is full or refuses.
        CreationStopped: if a stop was requested.
    """
    _clear(folder, store)
    used = [number for number in range(len(SPLITS)) if (splits == number).any()]
    state = _State(splits)
    with ExitStack() as stack:
        writers = {
            number: stack.enter_context(create_records(folder / _store_name(SPLITS[number], store), store))
            for number in used
        }
        catalog = stack.enter_context(CatalogueWriter(folder / INDEX_NAME))
        before = stack.enter_context(Catalogue(plan.catalog))
        for problem in (*_all_problems(before), *problems):
            catalog.add_problem(problem)
            state.count(problem)
        for chunk in range(plan.chunks(len(splits))):
            if watch.stop_requested():
                raise CreationStopped
            _take_chunk(plan.folder, chunk, before, writers, catalog, state)
            watch.progress("assemble", min((chunk + 1) * plan.chunk_size, len(splits)), len(splits))
        for problem in (*_duplicates(state, before), *_other_channels(state, plan, before)):
            catalog.add_problem(problem)
            state.count(problem)
        leaks = state.leaks(plan.max_distance, plan.schema.kind)
        said = [*warnings, *([leaks.text] if leaks is not None and leaks.text else [])]
        catalog.note("warnings", said)
    _save_mean(folder, state.sums)
    return Assembled(
        splits={SPLITS[number]: _split_note(folder, SPLITS[number], store) for number in used},
        problems=dict(sorted(state.problems.items())),
        sums=state.sums,
        stored_shape=state.stored_shape(),
        leaks=leaks,
        warnings=tuple(said),
    )


class _State:
    """What is collected on the way; a few bytes a sample."""

    def __init__(self, splits: np.ndarray) -> None:
        self.splits = splits
        self.sums = ImageSums()
        self.problems: dict[str, int] = {}
        self.rows = [0] * len(SPLITS)
        # Numbers in the finished catalog go split by split; those of samples that cannot be read stay unused.
        counts = [int((splits == number).sum()) for number in range(len(SPLITS))]
        self.firsts = [sum(counts[:number]) for number in range(len(SPLITS))]
        self.hashes: list[np.ndarray] = []
        self.contents: list[np.ndarray] = []
        self.content_numbers: list[np.ndarray] = []
        self.channel_counts: dict[int, int] = {}
        self.hashed_splits: list[np.ndarray] = []
        self.shapes: list[set[int]] = [set(), set(), set()]

    def count(self, problem: Problem) -> None:
        self.problems[problem.kind] = self.problems.get(problem.kind, 0) + 1

    def look(self, facts: ChunkFacts) -> None:
        """Take what the facts of a chunk say of its images."""
        self.sums.add_all(facts.sums)
        for seen, values in zip(self.shapes, (facts.stored_heights, facts.stored_widths, facts.channels), strict=True):
            seen.update(values if len(seen) < 2 else ())
        for channels in facts.channels:
            self.channel_counts[channels] = self.channel_counts.get(channels, 0) + 1
        read = [place for place, content in enumerate(facts.content_hashes) if content]
        self.contents.append(np.frombuffer(b"".join(facts.content_hashes[place] for place in read), "V16"))
        self.content_numbers.append(np.array([facts.numbers[place] for place in read], np.int64))
        hashed = [place for place, value in enumerate(facts.picture_hashes) if value is not None]
        self.hashes.append(np.array([facts.picture_hashes[place] for place in hashed], np.int64))
        self.hashed_splits.append(self.splits[[facts.numbers[place] for place in hashed]])

    def stored_shape(self) -> tuple[int | None, int | None, int | None]:
        height, width, channels = (
            seen.copy().pop() if len(seen) == 1 and min(seen) > 0 else None for seen in self.shapes
        )
        return height, width, channels

    def leaks(self, max_distance: int, kind: str) -> LeakReport | None:
        """Return what leaks by near duplicates; by equal content where nothing has a perceptual hash."""
        hashes = np.concatenate(self.hashes) if self.hashes else np.zeros(0, np.int64)
        if not len(hashes):
            return self._equal_content(_SAME.get(kind, "the same content"))
        return find_leaks(hashes, np.concatenate(self.hashed_splits), max_distance=max_distance)

    def _equal_content(self, equal: str) -> LeakReport | None:
        numbers = np.concatenate(self.content_numbers) if self.content_numbers else np.zeros(0, np.int64)
        if not len(numbers):
            return None
        digests = np.concatenate(self.contents).view(np.int64)[::2]  # 8 of the 16 bytes of each
        return find_leaks(digests, self.splits[numbers], equal=equal)


def _take_chunk(
    chunks: Path,
    chunk: int,
    before: Catalogue,
    writers: Mapping[int, RecordWriter],
    catalog: CatalogueWriter,
    state: _State,
) -> None:
    facts = read_facts(chunks, chunk)
    state.look(facts)
    for problem in facts.problems:
        catalog.add_problem(problem)
        state.count(problem)
    entries = before.entries(facts.numbers)
    with open_records(records_path(chunks, chunk)) as records:
        for place, entry in enumerate(entries):
            split = int(state.splits[entry.number])
            writers[split].append(entry.key, records.get(place))
            catalog.add(_finished(entry, facts, place, split, state))
            state.rows[split] += 1


def _finished(entry: Entry, facts: ChunkFacts, place: int, split: int, state: _State) -> Entry:
    label = facts.labels.get(place, entry.label)
    return replace(
        entry,
        number=state.firsts[split] + state.rows[split],
        split=SPLITS[split],
        row=state.rows[split],
        label=label,
        objects=None if entry.objects is None else len(label),
        source_bytes=_known(facts.source_bytes[place]),
        stored_bytes=facts.stored_bytes[place],
        width_px=_known(facts.widths[place]),
        height_px=_known(facts.heights[place]),
        content_hash=facts.content_hashes[place] or None,
        picture_hash=facts.picture_hashes[place],
    )


def _known(value: int) -> int | None:
    return None if value < 0 else value


def _duplicates(state: _State, before: Catalogue) -> Iterator[Problem]:
    """Yield a problem for each sample whose first part has the content of an earlier one."""
    contents = np.concatenate(state.contents) if state.contents else np.zeros(0, "V16")
    if not len(contents):
        return
    numbers = np.concatenate(state.content_numbers)
    _, firsts, inverse = np.unique(contents, return_index=True, return_inverse=True)
    again = np.flatnonzero(firsts[inverse] != np.arange(len(contents)))
    for start in range(0, len(again), _BLOCK):
        places = again[start : start + _BLOCK]
        own, others = (before.entries(numbers[chosen].tolist()) for chosen in (places, firsts[inverse[places]]))
        for one, other in zip(own, others, strict=True):
            splits = [SPLITS[state.splits[each.number]] for each in (one, other)]
            where = f"both in {splits[0]}" if splits[0] == splits[1] else f"one in {splits[0]}, one in {splits[1]}"
            reason = f"It has the same content as `{other.key}` ({where})."
            yield Problem(key=one.key, kind="duplicate", reason=reason)


def _other_channels(state: _State, plan: ChunkPlan, before: Catalogue) -> Iterator[Problem]:
    """Yield a problem for each image that is gray among colored ones, or colored among gray ones."""
    counts = {channels: count for channels, count in state.channel_counts.items() if channels > 0}
    if len(counts) < 2:
        return
    usual = max(counts, key=lambda channels: counts[channels])
    for chunk in range(plan.chunks(len(state.splits))):
        facts = read_facts(plan.folder, chunk)
        others = [facts.numbers[place] for place, each in enumerate(facts.channels) if each not in (usual, -1)]
        for entry in before.entries(others):
            reason = f"Most images have {usual} channels, this one has not; it is converted when it is read."
            yield Problem(key=entry.key, kind="other-channels", reason=reason)


def _all_problems(catalog: Catalogue) -> Iterator[Problem]:
    offset = 0
    while True:
        page = catalog.problems(offset=offset, limit=_BLOCK)
        yield from page
        offset += len(page)
        if not page:
            return


def _clear(folder: Path, store: str) -> None:
    """Remove what an attempt left that ended while it put things together."""
    for leftover in folder.glob(".*.partial"):
        leftover.unlink()
    names = [_store_name(split, each) for split in SPLITS for each in (store, "hdf5")]  # 0.1 made HDF5, too
    for path in (INDEX_NAME, MEAN_NAME, *names, *(index_path(name).name for name in names)):
        (folder / path).unlink(missing_ok=True)


def _store_name(split: str, store: str) -> str:
    return f"{split}.{store}"


def _split_note(folder: Path, split: str, store: str) -> SplitNote:
    path = folder / _store_name(split, store)
    with open_records(path) as records, Catalogue(folder / INDEX_NAME) as catalog:
        count, classes = len(records), catalog.class_counts(split)
    counts = tuple(classes.get(number, 0) for number in range(max(classes, default=-1) + 1))
    note = StoreNote(
        path=path.name, record_format=store, count=count, size_bytes=path.stat().st_size, sha256=_sha256(path)
    )
    return SplitNote(count=count, stores=(note,), class_counts=counts)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _save_mean(folder: Path, sums: ImageSums) -> Any:
    mean = sums.mean_image()
    if mean is None:
        return
    target = AtomicFile(folder / MEAN_NAME)
    try:
        with storage_errors(target.final), target.path.open("wb") as file:
            np.save(file, mean, allow_pickle=False)
        target.publish()
    except BaseException:
        target.discard()
        raise
