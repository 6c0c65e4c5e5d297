"""Shared parts of the exporters: report, file names and content, and the key lists and schema beside the images."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import cv2
import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError, DatapointError, StorageError
from ziggurat.formatting import plural
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

__all__ = [
    "FOLDER_KEYS_NAME",
    "SCHEMA_NAME",
    "CellWriter",
    "Export",
    "ExportReport",
    "ExportedKeys",
    "FileNames",
    "KeyWriter",
    "can_be_written",
    "completed",
    "encoded_part",
    "exported_schema",
    "line_names",
    "new_folder",
    "pixels_of",
    "read_keys",
    "suffix_of",
]

_SUFFIXES: Final = (
    (b"\xff\xd8\xff", (".jpg", ".jpeg", ".jpe", ".jfif")),
    (b"\x89PNG", (".png",)),
    (b"BM", (".bmp",)),
    (b"GIF8", (".gif",)),
    (b"RIFF", (".webp",)),
    (b"II*\0", (".tif", ".tiff")),
    (b"MM\0*", (".tif", ".tiff")),
    (b"P4", (".pbm",)),
    (b"P5", (".pgm", ".ppm")),
    (b"P6", (".ppm",)),
)
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')

FOLDER_KEYS_NAME: Final = ".ziggurat-keys.jsonl"
"""Name of the list in the folder of a class."""

_KEY_LINES_KEPT: Final = 50  # in memory before a list is opened to append them
_LONGEST_KEY_LINE: Final = 1024 * 1024  # characters; a damaged list must not fill the memory

SCHEMA_NAME: Final = ".ziggurat-schema.json"
"""Name of the file, which holds a schema as JSON."""

_TO_QUOTE: Final = re.compile(r'[\r\n"]|^\s|\s$')
_NOT_WRITTEN: Final = re.compile("[\0\ud800-\udfff]")


@dataclass
class Export:
    """One export: its folder, and what becomes of its samples.

    Args:
        dataset: to be written.
        folder: new or empty; it is made.
        format: name of the format.
        kinds: of datasets that the format holds.
        narrowed: images with 16 bits that were written with 8.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """

    dataset: Dataset
    folder: Path
    format: str
    kinds: Sequence[str]
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    narrowed: int = 0

    def __post_init__(self) -> None:
        if self.dataset.kind not in self.kinds:
            raise DataError(
                f"The format {self.format} holds datasets of kind {' or '.join(self.kinds)}.",
                received=f"kind {self.dataset.kind}",
                advice="Choose a format that holds this kind.",
            )
        self.folder = new_folder(Path(self.folder))

    def samples(self, split: str) -> Iterator[StoredSample]:
        """Yield the samples of a split that can be read; the others become problems."""
        self.counts[split] = 0
        for row in range(self.dataset.size(split)):
            try:
                yield self.dataset.sample(split, row)
            except DatapointError as error:
                self.leave_out(str(error.key), "unreadable", error.rule)

    def leave_out(self, key: str, kind: str, reason: str) -> None:
        """List a sample that could not be written."""
        self.problems.append(Problem(key=key, kind=kind, reason=reason, left_out=True))

    def write(self, path: str, content: bytes | str) -> None:
        """Write a file of the export."""
        target = self.folder / path
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)

    def write_class_names(self, name: str, *, numbered_from: int | None = None) -> None:
        """Write the names of the classes, one a line."""
        names = self.dataset.schema.class_names
        lines = line_names(names)
        self.notes += [f"The class {old!r} is written as {new!r}." for old, new in zip(names, lines) if old != new]
        if numbered_from is not None:
            lines = [f"{number}:{line}" for number, line in enumerate(lines, start=numbered_from)]
        if lines:
            self.write(name, "".join(f"{line}\n" for line in lines))

    def write_keys(self, name: str, keys: Sequence[str]) -> None:
        """Write the keys of samples, one JSON text a line, for our own importer."""
        self.write(name, "".join(f"{json.dumps(key, ensure_ascii=False)}\n" for key in keys))

    def report(self) -> ExportReport:
        """Write what only our own importers look for, and return what was written."""
        schema = self.dataset.schema
        self.write(SCHEMA_NAME, json.dumps(schema.as_json(), ensure_ascii=False, indent=1) + "\n")
        if self.narrowed:
            self.notes.append(
                f"{plural(self.narrowed, 'image')} with 16 bits: only the upper 8 bits in use are written."
            )
        if schema.ignore_class is not None:
            self.notes.append(f"Only our own importer knows that class {schema.ignore_class} is to be ignored.")
        return ExportReport(format=self.format, counts=self.counts, problems=self.problems, notes=self.notes)


class FileNames:
    """Gives each sample a path that is free and stays in the folder: its key wherever that is possible.

    Args:
        reserved: names of files and folders at the top that samples must not have, in lower case.
    """

    def __init__(self, *reserved: str) -> None:
        self._reserved = reserved
        self._taken: set[bytes] = set()

    def place(self, key: str, content: bytes) -> str:
        """Return the path for a sample's image, relative to the folder, with the suffix of its format."""
        parts = [_UNSAFE.sub("_", part) for part in key.split("/") if part not in ("", ".", "..")] or ["picture"]
        parts = [f"_{part}" if part.startswith(".") else part.strip() or "_" for part in parts]
        if parts[0].lower() in self._reserved:
            parts[0] = f"_{parts[0]}"
        stem, suffix = os.path.splitext("/".join(parts))
        fitting = suffixes_of(content)
        if suffix.lower() not in fitting:
            stem, suffix = stem + suffix, fitting[0]
        free, number = stem, 1
        while (mark := hashlib.blake2b(free.lower().encode(), digest_size=8).digest()) in self._taken:
            number += 1
            free = f"{stem}_{number}"
        self._taken.add(mark)
        return free + suffix


def encoded_part(part: bytes | str | np.ndarray, key: str) -> bytes:
    """Return a part as the content of a file: as it is stored, arrays (H, W[, C]) uint8 or uint16 as PNG.

    Raises:
        DatapointError: where it is an array that no image is.
    """
    if isinstance(part, np.ndarray):
        channels = 1 if part.ndim == 2 else part.shape[-1]
        if part.ndim not in (2, 3) or channels not in (1, 3) or part.dtype not in (np.uint8, np.uint16):
            raise DatapointError(key, f"an array {part.dtype} of {part.shape} is no image.")
        _done, encoded = cv2.imencode(".png", part if channels == 1 else np.ascontiguousarray(part[:, :, ::-1]))
        return encoded.tobytes()
    return part.encode() if isinstance(part, str) else part


def pixels_of(dataset: Dataset, sample: StoredSample) -> np.ndarray:
    """Return the image of a sample, (H, W, C) uint8, RGB or gray."""
    part: Any = sample.parts[0]
    if isinstance(part, np.ndarray):
        return part[:, :, None] if part.ndim == 2 else part
    form = dataset.manifest.image or ImageForm(encoding="original")
    return decode_image(part, channels=1 if form.channels == 1 else 3, key=sample.key, bits=form.bits)


def suffixes_of(content: bytes) -> tuple[str, ...]:
    """Return how the name of an image file with this content may end, the usual one first."""
    return next((suffixes for start, suffixes in _SUFFIXES if content.startswith(start)), (".img",))


def suffix_of(content: bytes) -> str:
    """Return how the name of an image file with this content ends."""
    return suffixes_of(content)[0]


def line_names(names: Sequence[str]) -> list[str]:
    """Return the names of classes as lines of a file: without control characters and blanks around them, none twice."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[\x00-\x1f\x7f-\x9f\ufffe\uffff\u2028\u2029]+", " ", name).strip() or "_"
        free, count = plain, 1
        while free in found:
            count += 1
            free = f"{plain}_{count}"
        found.append(free)
    return found


@dataclass(frozen=True, kw_only=True)
class ExportReport:
    """What an export wrote.

    Args:
        format: name of the format.
        counts: split → samples written.
        problems: samples that could not be written, or not wholly, with the reason.
        notes: what the format cannot hold of any sample, one sentence each.
    """

    format: str
    counts: dict[str, int]
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_keys(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, key) of a list; lines that are none are left out. Nothing where there is no list."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_LONGEST_KEY_LINE):
            try:
                place, key = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(place, str) and isinstance(key, str) and key and ".." not in place.split("/"):
                yield place.lstrip("/"), key


class ExportedKeys:
    """Gives the keys of files that are asked for in the order of a list.

    Args:
        path: the list, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._pairs = read_keys(path)
        self._rest: dict[str, str] | None = None

    def key(self, path: str) -> str:
        """Return the key of a file; its path where the list has none."""
        if self._rest is None:
            pair = next(self._pairs, None)
            if pair is not None and pair[0] == path:
                return pair[1]
            # The export was edited: from here on files are looked up, which needs memory for the rest.
            self._rest = dict([pair, *self._pairs] if pair is not None else self._pairs)
        return self._rest.get(path, path)


class KeyWriter:
    """Writes a list; one that says nothing is deleted in the end.

    Many may be written at a time: a file is open only while lines go into it.

    Args:
        path: of the list.
        start: what must stand before the paths so that they are keys.
        order: gives the place of a path in the order that a reader finds without the list; None where it has one.
    """

    def __init__(self, path: Path, start: str = "", order: Callable[[str], Any] | None = None) -> None:
        self._path = path
        self._start = start
        self._order = order
        self._last: Any = None
        self._lines: list[str] = []
        self._is_needed = False

    def add(self, path: str, key: str) -> None:
        """Add a file with the key of its sample."""
        self._is_needed |= self._start + path != key
        if self._order is not None:
            place = self._order(path)
            self._is_needed |= self._last is not None and place < self._last
            self._last = place
        self._lines.append(json.dumps([path, key], ensure_ascii=False) + "\n")
        if len(self._lines) >= _KEY_LINES_KEPT:
            self._write_out()

    def finish(self) -> None:
        """Write the rest, or delete the list if it is not needed."""
        if self._is_needed:
            self._write_out()
        else:
            self._path.unlink(missing_ok=True)

    def _write_out(self) -> None:
        with storage_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.writelines(self._lines)
        self._lines = []


def exported_schema(root: Path) -> Schema | None:
    """Return the schema that an export left beside its files; None where there is none, or a damaged one.

    Args:
        root: folder of the source.
    """
    try:
        return Schema.from_json(json.loads((root / SCHEMA_NAME).read_text("utf-8")))
    except (OSError, ValueError, TypeError, DataError):
        return None


def completed(schema: Schema, root: Path) -> Schema:
    """Return a schema with the colors, the class to ignore and the details that an export left beside its files.

    What the source itself says counts more. A file that is damaged, or of another kind of dataset, counts for nothing.

    Args:
        schema: of the source.
        root: folder of the source.
    """
    own = exported_schema(root)
    if own is None or own.kind != schema.kind:
        return schema
    ignored = own.ignore_class if schema.ignore_class is None else schema.ignore_class
    details = {**own.details, **schema.details}
    return replace(schema, colours=schema.colours or own.colours, ignore_class=ignored, details=details)


class CellWriter:
    """Writes a CSV or TSV file, in UTF-8; it has its name when it is whole. Use it in a ``with`` statement.

    Args:
        path: of the file.
        header: names of the columns.
        delimiter: between cells.
        missing: text for no value; it is never enclosed in quotes.
    """

    def __init__(self, path: Path, header: Sequence[str], *, delimiter: str = ",", missing: str = "") -> None:
        self._target = AtomicFile(path)
        self._delimiter = delimiter
        self._missing = missing
        with storage_errors(path):
            self._file = self._target.path.open("w", encoding="utf-8", newline="")
        self.write(header)

    def write(self, cells: Iterable[str | None]) -> None:
        """Write a row; None stands for no value."""
        line = self._delimiter.join(self._missing if cell is None else self._quoted(cell) for cell in cells)
        with storage_errors(self._target.final):
            self._file.write(line + "\n")

    def _quoted(self, cell: str) -> str:
        if cell and self._delimiter not in cell and not _TO_QUOTE.search(cell):
            return cell
        return '"' + cell.replace('"', '""') + '"'

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with storage_errors(self._target.final):
                self._file.close()
            if kind is None:
                self._target.publish()
        finally:
            self._target.discard()


def can_be_written(text: str) -> bool:
    """Say whether a text file can hold a text: zero signs and halves of a surrogate pair it cannot."""
    return not _NOT_WRITTEN.search(text)


def new_folder(folder: Path) -> Path:
    """Return the folder; it is made where it is not there.

    Raises:
        StorageError: where it holds something, or cannot be made.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        occupied = next(folder.iterdir(), None)
    if occupied is not None:
        raise StorageError(
            f"The folder `{folder}` is not empty: it holds `{occupied.name}`.",
            advice="Choose another folder.",
        )
    return folder
