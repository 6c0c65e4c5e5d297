"""Work unit of one process: a few hundred samples, read, converted to records, and written with their facts.

A chunk is two files in the work folder: ``00012.records`` and, written last, ``00012.facts``. A chunk whose facts
file exists is complete and is never processed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.datasets.catalogue import Catalogue, Entry
from ziggurat.datasets.creation.labels import fit_objects, misfits
from ziggurat.datasets.creation.pictures import FittedPicture, Fitting, decoded_picture, fit_mask, fit_picture
from ziggurat.datasets.creation.sums import PictureSums
from ziggurat.datasets.format_choice import importer
from ziggurat.datasets.hashing import NO_HASH, picture_hash
from ziggurat.datasets.importer import PartReader
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DatapointError, ZigguratError
from ziggurat.records.codec import pack, unpack
from ziggurat.records.record import FileReference, pack_record
from ziggurat.records.schema import Schema
from ziggurat.records.stores import create_records

__all__ = [
    "CHUNK",
    "LARGE_CHUNK",
    "ChunkFacts",
    "ChunkPlan",
    "facts_path",
    "make_chunk",
    "read_facts",
    "records_path",
]

CHUNK: Final = 256
"""Samples in a chunk where each takes its time, such as images that are decoded."""

LARGE_CHUNK: Final = 2048
"""Samples in a chunk of what is soon done: then bringing its files to the disk would take most of the time."""

_PICTURES: Final = ("image", "image2", "target")
_SHORT_KINDS: Final = ("table", "text-classification")
_TRAIN: Final = 0


@dataclass(frozen=True, kw_only=True)
class ChunkPlan:
    """What all chunks of a creation share.

    Args:
        folder: for the files of chunks.
        catalog: of the scan.
        source: local folder or file.
        format: name of the importer.
        options: of the importer, complete.
        schema: what the samples mean.
        fitting: how images are fitted; None where there are none.
        hashes: whether perceptual hashes are computed, where they are not known from before the split.
        sums: whether images of the training split are summed up, for their mean.
        max_distance: bits in which hashes of near duplicates may differ, for the report on leaks.
    """

    folder: Path
    catalogue: Path
    source: Path
    format: str
    options: Mapping[str, Any]
    schema: Schema
    fitting: Fitting | None
    hashes: bool
    sums: bool
    max_distance: int

    def __hash__(self) -> int:
        return hash((self.folder, self.catalogue))

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
    sums: PictureSums = field(default_factory=PictureSums)


def records_path(folder: Path, chunk: int) -> Path:
    """Return where the records of a chunk are."""
    return folder / f"{chunk:06d}.records"


def facts_path(folder: Path, chunk: int) -> Path:
    """Return where the facts of a chunk are."""
    return folder / f"{chunk:06d}.facts"


def read_facts(folder: Path, chunk: int) -> ChunkFacts:
    """Return the facts of a chunk that is done."""
    content = unpack(facts_path(folder, chunk).read_bytes())
    problems = [Problem(key=key, kind=kind, reason=why, left_out=out) for key, kind, why, out in content["problems"]]
    return ChunkFacts(**content | {"problems": problems, "sums": PictureSums.from_parts(content["sums"])})


def make_chunk(plan: ChunkPlan, chunk: int, splits: np.ndarray, hashes: np.ndarray | None) -> tuple[int, int]:
    """Make a chunk; return its number and how many samples it took.

    Args:
        plan: of the creation.
        chunk: its number; it has the samples from ``chunk * plan.chunk_size`` on.
        splits: (n) int8, the split of each of its samples, or -1 for one that is left out.
        hashes: (n) int64, the perceptual hash of each; None where they are not known yet.

    Raises:
        ZigguratError: where something else than a sample is at fault.
    """
    for path in (records_path(plan.folder, chunk), Path(f"{records_path(plan.folder, chunk)}.index")):
        path.unlink(missing_ok=True)  # of an attempt that ended before its facts were written
    first = chunk * plan.chunk_size
    wanted = [first + place for place in range(len(splits)) if splits[place] >= 0]
    catalogue, reader = _tools(plan)
    facts = ChunkFacts()
    with create_records(records_path(plan.folder, chunk), "tfrecord") as records:
        for entry in catalogue.entries(wanted):
            known = None if hashes is None else int(hashes[entry.number - first])
            try:
                value = _record(plan, reader, entry, facts, known, is_training=splits[entry.number - first] == _TRAIN)
            except DatapointError as error:
                facts.problems.append(Problem(key=entry.key, kind="unreadable", reason=error.rule, left_out=True))
                continue
            records.append(entry.key, value)
            facts.numbers.append(entry.number)
            facts.stored_bytes.append(len(value))
    _save(facts, facts_path(plan.folder, chunk))
    return chunk, len(splits)


@lru_cache(maxsize=2)
def _tools(plan: ChunkPlan) -> tuple[Catalogue, PartReader]:
    return Catalogue(plan.catalogue), importer(plan.format).reader(plan.source, plan.options)


def _record(
    plan: ChunkPlan, reader: PartReader, entry: Entry, facts: ChunkFacts, known: int | None, *, is_training: bool
) -> bytes:
    """Return the record of a sample, and write down what was seen; nothing is written down where it fails."""
    parts: list[Any] = []
    picture: FittedPicture | None = None
    first: Any = None
    for role, address in zip(plan.schema.parts, entry.parts, strict=False):
        part = _read(plan, reader, address, entry.key)
        first = part if first is None else first
        if plan.fitting is None or role not in (*_PICTURES, "mask"):
            parts.append(part.decode("utf-8") if role == "text" and isinstance(part, bytes) else part)
        elif role == "mask":
            assert picture is not None
            fill = plan.schema.ignore_class or 0
            parts.append(_kept(plan, reader, address, fit_mask(part, picture, plan.fitting, entry.key, fill)))
        else:
            fitted = fit_picture(part, plan.fitting, entry.key)
            picture = picture or fitted
            parts.append(_kept(plan, reader, address, fitted.content))
    label, problems = _label(entry, picture)
    value = pack_record(parts, label)
    _note(plan, facts, entry, first, picture, is_training=is_training)
    facts.picture_hashes.append(_hash(plan, entry.key, first, picture) if known is None else _given(known))
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


def _label(entry: Entry, picture: FittedPicture | None) -> tuple[Any, list[Problem]]:
    if picture is None or picture.transform is None or picture.pixels is None or entry.objects is None:
        return entry.label, []
    height, width = picture.pixels.shape[:2]
    label, lost = fit_objects(entry.label, picture.transform, (height, width), picture.source_size)
    problems = []
    if lost:
        reason = f"{lost} of {entry.objects} objects are outside of the fitted image."
        problems.append(Problem(key=entry.key, kind="object-lost", reason=reason))
    if bad := misfits(entry.label, picture.source_size):
        reason = f"{bad} of {entry.objects} objects have a mask that is not as large as the image: they stay without."
        problems.append(Problem(key=entry.key, kind="bad-mask", reason=reason))
    return label, problems


def _note(
    plan: ChunkPlan, facts: ChunkFacts, entry: Entry, first: Any, picture: FittedPicture | None, *, is_training: bool
) -> None:
    size = picture.source_size if picture is not None else None
    pixels = picture.pixels if picture is not None else None
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


def _given(known: int) -> int | None:
    return None if known == NO_HASH else known


def _hash(plan: ChunkPlan, key: str, first: Any, picture: FittedPicture | None) -> int | None:
    """Return the perceptual hash of a sample's first image; None where there is none, or it cannot be decoded."""
    if not plan.hashes or picture is None:
        return None
    if picture.decoded is not None:
        return picture_hash(picture.decoded)
    if not plan.decodes_for_hashes or plan.fitting is None:
        return None
    try:
        return picture_hash(decoded_picture(first, plan.fitting, key))
    except DatapointError:
        return None  # its header was right, and more was not asked for


def _save(facts: ChunkFacts, path: Path) -> None:
    content = dict(vars(facts))
    content["problems"] = [(each.key, each.kind, each.reason, each.left_out) for each in facts.problems]
    content["sums"] = facts.sums.as_parts()
    target = AtomicFile(path, replace=True)
    try:
        with storage_errors(path):
            target.path.write_bytes(pack(content))
        target.publish()
    except BaseException:
        target.discard()
        raise
