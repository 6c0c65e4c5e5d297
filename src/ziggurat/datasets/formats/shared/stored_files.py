"""Shared parts of the image exporters: supported dataset kinds, file names, file content, and losses."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.export_report import ExportReport
from ziggurat.datasets.formats.shared.exported_schema import SCHEMA_NAME
from ziggurat.datasets.formats.shared.text_cells import new_folder
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError, DatapointError

__all__ = ["Export", "FileNames", "encoded_part", "line_names", "pixels_of", "suffix_of"]

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


@dataclass
class Export:
    """One export: its folder, and what becomes of its samples.

    Args:
        dataset: to be written.
        folder: new or empty; it is made.
        format: name of the format.
        kinds: of datasets that the format holds.

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
    form = dataset.manifest.image
    return decode_image(part, channels=1 if form is not None and form.channels == 1 else 3, key=sample.key)


def suffixes_of(content: bytes) -> tuple[str, ...]:
    """Return how the name of an image file with this content may end, the usual one first."""
    return next((suffixes for start, suffixes in _SUFFIXES if content.startswith(start)), (".img",))


def suffix_of(content: bytes) -> str:
    """Return how the name of an image file with this content ends."""
    return suffixes_of(content)[0]


def line_names(names: Sequence[str]) -> list[str]:
    """Return names of classes as lines: without control characters, blanks around them and repetitions."""
    found: list[str] = []
    for name in names:
        plain = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", name).split()) or "_"
        plain = name if plain == name.strip() == name else plain
        free, number = plain, 1
        while free in found:
            number += 1
            free = f"{plain}_{number}"
        found.append(free)
    return found
