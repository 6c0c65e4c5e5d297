"""Importer for MNIST-style idx files: images in one file, their classes in another."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.dataset.mnist import damaged_file, read_idx
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.numbered_classes import NumberedClasses, no_number
from ziggurat.datasets.formats.shared.text_files import names_in
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample, split_of
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema

__all__ = ["MNISTFilesImporter"]

_PART: Final = re.compile(
    r"(?:(?P<set>.+?)[-_.])?(?P<split>train|training|t10k|test|testing|val|valid|validation)"
    r"[-_.](?P<part>images|labels)[-_.]idx\d[-_.][a-z]+(?:\.gz)?",
    re.IGNORECASE,
)
_ANY: Final = re.compile(r"(?P<stem>.+?)[-_.]idx(?:\d[-_.]\w+)?(?:\.gz)?", re.IGNORECASE)
_NAME_FILES: Final = ("classes.txt", "labels.txt", "class_names.txt")
_NAMES: Final = {"test": "t10k", "": "train"}
_DIGITS: Final = tuple("0123456789")

_TYPES: Final = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_BYTES: Final = 1 << 30  # of a compressed file, which is held in memory
_HEADER_BYTES: Final = 4 + 4 * 255  # of the most dimensions that a header can declare


@dataclass(frozen=True)
class _Files:
    """The files of one split; without labels, an array of its own."""

    split: str
    values: str
    labels: str = ""
    name: str = ""


class MNISTFilesImporter(Importer):
    """Images and classes in idx files, possibly in gzip; other idx files become arrays.

    A file in gzip is decompressed once, into memory, and may have 1 GiB.
    """

    name = "idx"
    title = "idx (MNIST)"
    kinds = ("image-classification", "generic")
    options = (
        ImporterOption(name="class_names", type=list, default=[], help="Names of the classes, by number."),
        ImporterOption(name="set", type=str, default="", help="Set to read where a folder has several: its prefix."),
        ImporterOption(name="transposed", type=bool, default=False, help="Columns come first, as in EMNIST."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim files by their names and their first bytes."""
        try:
            found = files_in(source)
            shapes = [read_header_of(_root(source) / each.values).shape for each in found]
        except DataError:
            return None
        if not found:
            return None
        labelled = bool(found[0].labels)
        counts = ", ".join(f"{each.split or each.name}: {shape[0]}" for each, shape in zip(found, shapes) if shape)
        what = "images with classes" if labelled else "values"
        return Guess(
            format=self.name,
            confidence=0.97 if labelled else 0.6,
            reason=f"idx files of {what} ({counts})",
            kind="image-classification" if labelled else "generic",
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the files."""
        return _IndexedScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads one image, or one value of an array, at a time."""
        return _IndexedReader(_root(source), bool(options["transposed"]))


class _IndexedScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = _root(source)
        self._files = _chosen(files_in(source), options["set"])
        self._names = _names_of_files(source)
        self._given = tuple(str(name) for name in options["class_names"])
        self._numbers = NumberedClasses()
        if not self._files:
            raise DataError(f"`{source}` has no idx files, such as `train-images-idx3-ubyte.gz`.")

    def __iter__(self) -> Iterator[Sample | Problem]:
        for files in self._files:
            yield from self._samples(files)
        yield from self._not_taken()
        if self._files[0].labels:
            yield from self._numbers.problems(self._class_names(), self._files[0].labels)

    @property
    def schema(self) -> Schema:
        """Classes by number if they have no names."""
        if not self._files[0].labels:
            return Schema(kind="generic")
        names = self._numbers.names(self._class_names())
        names = (*names, *_DIGITS[len(names) :]) if not self._class_names() else names
        return completed(Schema(kind="image-classification", class_names=names), self._root)

    def _class_names(self) -> tuple[str, ...]:
        path = next((self._root / name for name in _NAME_FILES if (self._root / name).is_file()), None)
        return self._given or (() if path is None else names_in(path))

    def _samples(self, files: _Files) -> Iterator[Sample | Problem]:
        shape = read_header_of(self._root / files.values).shape
        labels = open_values(self._root / files.labels) if files.labels else None
        if labels is not None and (labels.ndim != 1 or shape[0] != len(labels) or labels.dtype.kind not in "ui"):
            raise DataError(
                "A file of labels has a number for each image.",
                received=f"{shape[0]} images in `{files.values}`, {labels.dtype.name} of {labels.shape} in "
                f"`{files.labels}`",
                advice="They belong to different sets, or one is damaged: get both anew.",
            )
        prefix = files.split if files.labels else files.name
        keys = self._keys(files.split)
        for number in range(shape[0] if shape else 0):
            value = None if labels is None else int(labels[number])
            label = None if value is None else self._numbers.number(value)
            key = next(keys, "") or f"{prefix}/{number:05d}"
            if value is not None and label is None:
                yield no_number(key, value, files.split)
            else:
                yield Sample(key=key, parts=(f"{files.values}#{number}",), label=label, split=files.split)

    def _not_taken(self) -> Iterator[Problem]:
        """Yield images without labels, labels without images, and files that another one stands for."""
        taken = {name for files in self._files for name in (files.values, files.labels)}
        unzipped = {name.removesuffix(".gz") for name in taken}
        splits = {files.split for files in self._files}
        for name in self._names:
            part = _PART.fullmatch(name)
            if name in taken or not (part or _ANY.fullmatch(name)):
                continue
            if part and (part["set"] or "") != self._files[0].name:
                continue
            if part is None or _split_of(part) in splits:
                is_same = name.removesuffix(".gz") in unzipped
                reason = "The same file is there twice." if is_same else "Other files are read as this split's."
                why = "other files of their set are read"
                yield Problem(key=name, kind="other-files", reason=reason, names=int(not is_same), why=why)
                continue
            has_images = part["part"].lower() == "images"
            kind, reason = ("no-label", "has no labels") if has_images else ("no-picture", "has no images")
            shape = read_header_of(self._root / name).shape
            for number in range(shape[0] if shape else 0):
                key = f"{name}#{number}"
                yield Problem(key=key, kind=kind, reason=f"Its split {reason}.", left_out=True, split=_split_of(part))

    def _keys(self, split: str) -> Iterator[str]:
        """Yield the keys that our exporter wrote beside the files."""
        path = self._root / f"{_NAMES.get(split, split)}-keys.jsonl"
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                yield from (str(json.loads(line)) for line in lines)


class _IndexedReader(PartReader):
    """Reads by addresses such as ``train-images-idx3-ubyte#42``; each file is opened once."""

    def __init__(self, root: Path, transposed: bool) -> None:
        self._root = root
        self._transposed = transposed
        self._open: dict[str, np.ndarray] = {}

    def read(self, address: str) -> np.ndarray:
        """Return an image (H, W, C) uint8, or a value of an array as it is, in the machine's byte order."""
        name, _, number = address.rpartition("#")
        if name not in self._open:
            try:
                self._open[name] = open_values(self._root / name)
            except DataError as error:
                raise DatapointError(address, str(error)) from error
        values = self._open[name]
        if not number.isdigit() or int(number) >= len(values):
            raise DatapointError(address, f"`{name}` has {len(values)} values.")
        value = np.array(values[int(number)], values.dtype.newbyteorder("="))
        if value.dtype != np.uint8 or value.ndim not in (2, 3):
            return value
        value = np.ascontiguousarray(value.swapaxes(0, 1)) if self._transposed else value
        return value[:, :, None] if value.ndim == 2 else value

    def close(self) -> None:
        """Let the files go."""
        self._open.clear()


def files_in(source: Path) -> list[_Files]:
    """Return the files of a source by set, the training split first; a file of arrays has no labels."""
    names = _names_of_files(source)
    parts: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        if found := _PART.fullmatch(name):
            parts.setdefault((found["set"] or "", _split_of(found)), {}).setdefault(found["part"].lower(), name)
    order = {"train": 0, "val": 1, "test": 2}
    pairs = sorted(
        (
            _Files(split, part["images"], part["labels"], prefix)
            for (prefix, split), part in parts.items()
            if len(part) == 2
        ),
        key=lambda each: (each.name, order[each.split]),
    )
    return pairs or [_Files("", name, name=found["stem"]) for name in names if (found := _ANY.fullmatch(name))]


def _chosen(files: list[_Files], name: str) -> list[_Files]:
    """Return the files of one set; arrays belong to no set.

    Raises:
        DataError: where there are several sets and none is named, or no such set.
    """
    sets = sorted({each.name for each in files if each.labels})
    if name and name not in sets:
        raise DataError(
            f"There is no set `{name}`.", received=", ".join(sets) or "no set", details={"field": "options.set"}
        )
    if len(sets) > 1 and not name:
        raise DataError(
            "The folder has several sets, whose classes differ.",
            received=", ".join(sets),
            advice=f"Set the option `set` to one of {', '.join(sets)}.",
            details={"field": "options.set", "values": sets},
        )
    return [each for each in files if not name or each.name == name]


def _names_of_files(source: Path) -> list[str]:
    return [source.name] if source.is_file() else sorted(each.name for each in source.iterdir() if each.is_file())


def _split_of(part: re.Match[str]) -> str:
    word = part["split"].lower()
    return "test" if word == "t10k" else split_of(word)


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent


@dataclass(frozen=True)
class IndexedHeader:
    """What the first bytes of a file say.

    Args:
        shape: of the array.
        dtype: of its values, big-endian.
        compressed: whether the file is in gzip.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    compressed: bool

    @property
    def start_bytes(self) -> int:
        """Where the values begin."""
        return 4 + 4 * len(self.shape)

    @property
    def size_bytes(self) -> int:
        """Size of the whole file, decompressed."""
        return self.start_bytes + math.prod(self.shape) * self.dtype.itemsize


def read_header_of(path: Path) -> IndexedHeader:
    """Return the header of a file.

    Raises:
        DataError: where the file is no idx file, cut off, or compressed and larger than 1 GiB.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as file:
            start = file.read(_HEADER_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged_file(path, f"it cannot be read ({error})") from error
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or len(start) < 4 + 4 * start[3]:
        raise damaged_file(path, f"it starts with {start[:4]!r}")
    shape = tuple(int.from_bytes(start[place : place + 4]) for place in range(4, 4 + 4 * start[3], 4))
    header = IndexedHeader(shape, np.dtype(_TYPES[start[2]]), compressed)
    _check_size(path, header)
    return header


def open_values(path: Path) -> np.ndarray:
    """Return the array in a file; a plain file is mapped, so that only what is used of it is read.

    Raises:
        DataError: as ``read_header_of``.
    """
    header = read_header_of(path)
    if header.compressed or not math.prod(header.shape):
        return read_idx(path, dimensions=len(header.shape))
    return np.memmap(path, header.dtype, "r", offset=header.start_bytes, shape=header.shape)


def _check_size(path: Path, header: IndexedHeader) -> None:
    if not header.compressed:
        found = path.stat().st_size
        if found != header.size_bytes:
            raise damaged_file(path, f"{found} bytes where its header says {header.size_bytes}")
        return
    if header.size_bytes > _MOST_BYTES:
        raise DataError(
            "A compressed idx file of at most 1 GiB is read, because it is held in memory.",
            received=f"`{path}` with {header.size_bytes} bytes",
            advice="Decompress it with gunzip; then only what is used of it is read.",
        )
    with path.open("rb") as file:  # gzip ends with the size, so a file that was cut off or goes on is seen at once
        file.seek(-4, 2)
        found = int.from_bytes(file.read(4), "little")
    if found != header.size_bytes:
        raise damaged_file(path, f"{found} bytes where its header says {header.size_bytes}")
