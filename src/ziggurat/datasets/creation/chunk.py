"""Work unit of one process, a few hundred samples read and written as records, and the pool of processes."""

from __future__ import annotations

import atexit
import hashlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import astuple, dataclass, field, fields
from functools import cache
from multiprocessing.connection import wait as wait_for_handles
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import cv2
import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.image_codec import highest_value
from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.datasets.creation.images import (
    FittedPicture,
    Fitting,
    ImageSums,
    decoded_image,
    fit_mask,
    fit_objects,
    fit_picture,
    misfits,
)
from ziggurat.datasets.format_registry import importer
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.importer import PartReader
from ziggurat.datasets.samples import Problem
from ziggurat.datasets.sources.web import address_limits, limit_addresses
from ziggurat.errors import DatapointError, DataWorkerError, ZigguratError
from ziggurat.formatting import plural
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.records.codec import FileReference, pack, pack_record, unpack
from ziggurat.records.offered_folders import Watched, watch, watched
from ziggurat.records.schema import Schema
from ziggurat.records.stores import create_records

__all__ = [
    "CHUNK",
    "ChunkFacts",
    "ChunkPlan",
    "SourcePlan",
    "facts_path",
    "in_processes",
    "make_chunk",
    "read_facts",
    "records_path",
]

CHUNK: Final = 256
"""Samples in a chunk where each takes its time, such as images that are decoded."""
LARGE_CHUNK: Final = 2048
"""Samples in a chunk of what is soon done: then bringing its files to the disk would take most of the time."""
_IMAGES: Final = ("image", "image2", "target")
_SHORT_KINDS: Final = ("table", "text-classification")
_TRAIN: Final = 0
_Result = TypeVar("_Result")
_AHEAD = 3
"""Tasks that wait for each process: enough that none is idle, few enough that a stop is quick."""

_mine: tuple[Callable[..., Any], Callable[[], AbstractContextManager[Any]]] | None = None


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """How any process reads the samples of a source.

    Args:
        folder: for the files of chunks.
        catalog: of the scan.
        source: local folder or file.
        format: name of the importer.
        options: of the importer, complete.
        fitting: how images are fitted; None where there are none.
    """

    folder: Path
    catalog: Path
    source: Path
    format: str
    options: Mapping[str, Any]
    fitting: Fitting | None

    @contextmanager
    def opened(self) -> Iterator[tuple[Self, Catalogue, PartReader]]:
        """Give the plan with the catalog of the source and the reader of its parts; both are closed at the end.

        Raises:
            DataError: where one of them cannot be opened.
        """
        with Catalogue(self.catalog) as catalog, importer(self.format).reader(self.source, self.options) as reader:
            yield self, catalog, reader


@dataclass(frozen=True, kw_only=True)
class ChunkPlan(SourcePlan):
    """What all chunks of a creation share, besides the source.

    Args:
        schema: what the samples mean.
        hashes: whether perceptual hashes are computed, where they are not known from before the split.
        sums: whether images of the training split are summed up, for their mean.
        max_distance: bits in which hashes of near duplicates may differ, for the report on leaks.
    """

    schema: Schema
    hashes: bool
    sums: bool
    max_distance: int

    @property
    def chunk_size(self) -> int:
        """Samples in a chunk."""
        if self.fitting is None:
            return LARGE_CHUNK if self.schema.kind in _SHORT_KINDS else CHUNK
        stays = self.fitting.form.encoding == "reference" and self.fitting.check != "decode"
        return LARGE_CHUNK if stays and not self.decodes_for_hashes else CHUNK

    @property
    def decodes_for_hashes(self) -> bool:
        """Whether images are decoded for their hashes only; where nothing is to be looked at, none is."""
        return self.hashes and self.fitting is not None and self.fitting.keeps_bytes and self.fitting.check == "header"

    def chunks(self, count: int) -> int:
        """Return the number of chunks of so many samples."""
        return -(-count // self.chunk_size)


@dataclass(kw_only=True)
class ChunkFacts:
    """What is known of the good samples of a chunk, by place, and of the bad ones.

    Args:
        numbers: of the good samples in the scan's catalog.
        source_bytes: of the first part; -1 where unknown.
        stored_bytes: of the record.
        widths: of the first image as it came; -1 where unknown.
        heights: likewise.
        channels: of the first image as the record gives it; -1 where unknown.
        stored_heights: of the first image as the record gives it; -1 where unknown.
        stored_widths: likewise.
        content_hashes: first 16 bytes of the SHA-256 of the first part; empty where it was not read.
        picture_hashes: perceptual hashes; None where there is none.
        labels: place → label, where it differs from the scan's.
        problems: found while reading.
        sums: of the images of the training split.
        highest: largest value of the images with 16 bits in the training split; -1 where there are none.
    """

    numbers: list[int] = field(default_factory=list)
    source_bytes: list[int] = field(default_factory=list)
    stored_bytes: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)
    channels: list[int] = field(default_factory=list)
    stored_heights: list[int] = field(default_factory=list)
    stored_widths: list[int] = field(default_factory=list)
    content_hashes: list[bytes] = field(default_factory=list)
    picture_hashes: list[int | None] = field(default_factory=list)
    labels: dict[int, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    sums: ImageSums = field(default_factory=ImageSums)
    highest: int = -1


def records_path(folder: Path, chunk: int) -> Path:
    """Return where the records of a chunk are."""
    return folder / f"{chunk:06d}.records"


def facts_path(folder: Path, chunk: int) -> Path:
    """Return where the facts of a chunk are."""
    return folder / f"{chunk:06d}.facts"


def read_facts(folder: Path, chunk: int) -> ChunkFacts:
    """Return the facts of a chunk that is done."""
    content = unpack(facts_path(folder, chunk).read_bytes())
    names = [each.name for each in fields(Problem)]  # 0.2 wrote the first four
    problems = [Problem(**dict(zip(names, values, strict=False))) for values in content["problems"]]
    return ChunkFacts(**content | {"problems": problems, "sums": ImageSums.from_parts(content["sums"])})


def make_chunk(
    opened: tuple[ChunkPlan, Catalogue, PartReader], chunk: int, splits: np.ndarray, hashes: np.ndarray | None
) -> tuple[int, int]:
    """Make a chunk; return its number and how many samples it took.

    Args:
        opened: plan of the creation, with what it opened.
        chunk: its number; it has the samples from ``chunk * plan.chunk_size`` on.
        splits: (n) int8, the split of each of its samples, or -1 for one that is left out.
        hashes: (n) int64, the perceptual hash of each; None where they are not known yet.

    Raises:
        ZigguratError: where something else than a sample is at fault.
    """
    plan, catalog, reader = opened
    for path in (records_path(plan.folder, chunk), Path(f"{records_path(plan.folder, chunk)}.index")):
        path.unlink(missing_ok=True)  # of an attempt that ended before its facts were written
    first = chunk * plan.chunk_size
    wanted = [first + place for place in range(len(splits)) if splits[place] >= 0]
    facts = ChunkFacts()
    with create_records(records_path(plan.folder, chunk), "tfrecord") as records:
        for entry in catalog.entries(wanted):
            known = None if hashes is None else int(hashes[entry.number - first])
            try:
                value = _record(plan, reader, entry, facts, known, is_training=splits[entry.number - first] == _TRAIN)
            except DatapointError as error:
                facts.problems.append(_unreadable(plan, entry, error.rule))
                continue
            records.append(entry.key, value)
            facts.numbers.append(entry.number)
            facts.stored_bytes.append(len(value))
    _save(facts, facts_path(plan.folder, chunk))
    return chunk, len(splits)


def _unreadable(plan: ChunkPlan, entry: Entry, reason: str) -> Problem:
    number, names = entry.class_number, plan.schema.class_names
    return Problem(
        key=entry.key,
        kind="unreadable",
        reason=reason,
        left_out=True,
        objects=entry.objects or 0,
        class_name=names[number] if number is not None and 0 <= number < len(names) else "",
        split=entry.split,
    )


def _record(
    plan: ChunkPlan, reader: PartReader, entry: Entry, facts: ChunkFacts, known: int | None, *, is_training: bool
) -> bytes:
    """Return the record of a sample, and write down what was seen; nothing is written down where it fails."""
    parts: list[Any] = []
    image: FittedPicture | None = None
    first: Any = None
    for role, address in zip(plan.schema.parts, entry.parts, strict=False):
        part = _read(plan, reader, address, entry.key)
        first = part if first is None else first
        if plan.fitting is None or role not in (*_IMAGES, "mask"):
            parts.append(part.decode("utf-8") if role == "text" and isinstance(part, bytes) else part)
        elif role == "mask":
            assert image is not None
            fill = plan.schema.ignore_class or 0
            parts.append(_kept(plan, reader, address, fit_mask(part, image, plan.fitting, entry.key, fill)))
        else:
            fitted = fit_picture(part, plan.fitting, entry.key)
            image = image or fitted
            parts.append(_kept(plan, reader, address, fitted.content))
    label, problems = _label(entry, image)
    value = pack_record(parts, label)
    _note(plan, facts, entry, first, image, is_training=is_training)
    facts.picture_hashes.append(_hash(plan, entry.key, first, image) if known is None else _given(known))
    if label is not entry.label:
        facts.labels[len(facts.numbers)] = label
    facts.problems += problems
    return value


def _read(plan: ChunkPlan, reader: PartReader, address: str | bytes, key: str) -> Any:
    if isinstance(address, bytes):
        return address
    needs_no_content = plan.fitting is not None and plan.fitting.check == "none" and reader.file(address) is not None
    if needs_no_content and plan.fitting is not None and plan.fitting.form.encoding == "reference":
        return b""
    try:
        return reader.read(address)
    except ZigguratError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise DatapointError(key, f"it cannot be read ({type(error).__name__}: {error}).") from error


def _kept(plan: ChunkPlan, reader: PartReader, address: str | bytes, content: Any) -> Any:
    """Return what the record holds of a part: its content, or where its file is."""
    if plan.fitting is None or plan.fitting.form.encoding != "reference":
        return content
    path = reader.file(address) if isinstance(address, str) else None
    if path is None:
        raise ZigguratError(
            "Only images that are files of their own can be referenced in place.",
            received=f"{address!r} of the format {plan.format}",
            advice="Choose another encoding: original, png, jpeg or raw.",
        )
    try:
        about = path.stat()
    except OSError as error:
        raise DatapointError(str(address), f"it cannot be read ({error.strerror}).") from error
    return FileReference(str(address), about.st_size, about.st_mtime_ns)


def _label(entry: Entry, image: FittedPicture | None) -> tuple[Any, list[Problem]]:
    if image is None or image.transform is None or image.pixels is None or entry.objects is None:
        return entry.label, []
    height, width = image.pixels.shape[:2]
    label, lost = fit_objects(entry.label, image.transform, (height, width), image.source_size)
    problems = []
    if lost:
        reason = f"{lost} of {plural(entry.objects, 'object')} outside of the fitted image."
        problems.append(Problem(key=entry.key, kind="object-lost", reason=reason, objects=lost))
    if bad := misfits(entry.label, image.source_size):
        count = plural(entry.objects, "object")
        reason = f"{bad} of {count} with a mask that is not as large as the image: stored without it."
        problems.append(Problem(key=entry.key, kind="bad-mask", reason=reason))
    return label, problems


def _note(
    plan: ChunkPlan, facts: ChunkFacts, entry: Entry, first: Any, image: FittedPicture | None, *, is_training: bool
) -> None:
    size = image.source_size if image is not None else None
    pixels = image.pixels if image is not None else None
    content = first if isinstance(first, bytes) else first.encode() if isinstance(first, str) else first.tobytes()
    facts.source_bytes.append(len(content) if content else -1 if entry.source_bytes is None else entry.source_bytes)
    facts.heights.append(size[0] if size else -1)
    facts.widths.append(size[1] if size else -1)
    shape = pixels.shape if pixels is not None else (-1, -1, -1)
    facts.stored_heights.append(shape[0])
    facts.stored_widths.append(shape[1])
    facts.channels.append(shape[2] if len(shape) == 3 else 1)
    facts.content_hashes.append(hashlib.sha256(content).digest()[:16] if content else b"")
    if plan.sums and is_training and pixels is not None:
        facts.sums.add(pixels)
    if plan.fitting is not None and isinstance(first, bytes) and first:
        _note_values(plan.fitting.form.bits, facts, entry.key, highest_value(first), is_training=is_training)


def _note_values(bits: int, facts: ChunkFacts, key: str, highest: int | None, *, is_training: bool) -> None:
    """Note the largest value of an image with 16 bits; list it where it is above the bits of the training split."""
    if highest is None:
        return
    if is_training:
        facts.highest = max(facts.highest, highest)
    elif highest >> bits:
        reason = f"Its values reach {highest}, above the {bits} bits of the training split: they become white."
        facts.problems.append(Problem(key=key, kind="above-range", reason=reason))


def _given(known: int) -> int | None:
    return None if known == NO_HASH else known


def _hash(plan: ChunkPlan, key: str, first: Any, image: FittedPicture | None) -> int | None:
    """Return the perceptual hash of a sample's first image; None where there is none, or it cannot be decoded."""
    if not plan.hashes or image is None:
        return None
    if image.decoded is not None:
        return picture_hash(image.decoded)
    if not plan.decodes_for_hashes or plan.fitting is None:
        return None
    try:
        return picture_hash(decoded_image(first, plan.fitting, key))
    except DatapointError:
        return None  # its header was right, and more was not asked for


def _save(facts: ChunkFacts, path: Path) -> None:
    content = dict(vars(facts))
    content["problems"] = [astuple(each) for each in facts.problems]
    content["sums"] = facts.sums.as_parts()
    target = AtomicFile(path, replace=True)
    try:
        with storage_errors(path):
            target.path.write_bytes(pack(content))
        target.publish()
    except BaseException:
        target.discard()
        raise


def in_processes(
    function: Callable[..., _Result],
    opened: Callable[[], AbstractContextManager[Any]],
    tasks: Iterable[tuple[Any, ...]],
    workers: int,
) -> Iterator[_Result]:
    """Yield ``function(shared, *task)`` for all tasks, as they get ready.

    Args:
        function: of a module, so that a process can find it.
        opened: gives what all calls in a process share, and closes it at the end; sent to each process once.
        tasks: taken as they are needed.
        workers: processes; 0: everything is done in this one.

    Raises:
        DataWorkerError: where a process was killed.
    """
    if workers == 0:
        with opened() as shared:
            for task in tasks:
                yield function(shared, *task)
        return
    # Spawned, not forked: a fork of a process with threads may hang, and OpenCV has some.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (function, opened, address_limits(), watched())) as pool:
        waiting: set[Future[_Result]] = set()
        try:
            for task in tasks:
                waiting.add(pool.submit(_call, *task))
                if len(waiting) >= workers * _AHEAD:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        except BrokenProcessPool:
            raise DataWorkerError(
                "A process that reads the samples was killed.",
                advice="Out of memory is the usual reason: use fewer workers. Then go on: what was done is kept.",
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(
    function: Callable[..., Any],
    opened: Callable[[], AbstractContextManager[Any]],
    addresses: AllowedAddresses | None,
    source: Watched | None,
) -> None:
    global _mine
    _mine = (function, opened)
    limit_addresses(addresses)
    watch(source)
    cv2.setNumThreads(1)  # the processes are the parallelism
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), name="lifeline", daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_handles([sentinel])
    os._exit(1)


def _call(*task: Any) -> Any:
    assert _mine is not None
    function, opened = _mine
    return function(_shared(opened), *task)


@cache
def _shared(opened: Callable[[], AbstractContextManager[Any]]) -> Any:
    """Open what the tasks of this process share: at the first task, which can tell what fails, until the end."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(opened())
