"""Importer for folders of NumPy files: one sample per file, ``.npy`` for one array and ``.npz`` for several."""

from __future__ import annotations

import csv
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import decode_text
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import Problem, Sample, split_of
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema

__all__ = ["ArraysImporter"]

_SUFFIXES: Final = (".npy", ".npz")
_LABEL_FILES: Final = ("labels.csv", "labels.json")
_NO_FILE: Final = "their labels name no file"

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class ArraysImporter(Importer):
    """Arrays of any kind, for networks that know what they mean.

    Labels come from a table ``file,label…`` or a JSON object ``{"file": label}``, with numbers or lists of them.
    """

    name = "arrays"
    title = "NumPy arrays"
    kinds = ("generic",)
    options = (
        ImporterOption(name="labels", type=str, default="", help="File with the labels: CSV or JSON."),
        ImporterOption(
            name="force_same_shape",
            type=bool,
            default=True,
            help="Leave out arrays that differ in shape from the first.",
        ),
        ENCODING_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim folders with NumPy files."""
        first = next(_files(source), None) if source.is_dir() else None
        if first is None:
            return None
        return Guess(
            format=self.name, confidence=0.9, reason=f"NumPy files, such as `{first}`", kind="generic", options={}
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the files."""
        return _ArrayScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads the arrays."""
        return _ArrayReader(_root(source))


class _ArrayScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._root = _root(source)
        self._same = bool(options["force_same_shape"])
        self._labels = _labels(self._root, options["labels"], options["encoding"])
        self._used: set[str] = set()
        self._first: Shapes = ()

    def __iter__(self) -> Iterator[Sample | Problem]:
        for path in [self._source.name] if self._source.is_file() else _files(self._source):
            yield self._sample(path)
            if self._labels and self._name_in_labels(path) is None:
                yield Problem(key=path, kind="no-label", reason="No row of the labels names it: its label is empty.")
        for name in self._labels:
            if name not in self._used:
                yield Problem(key=name, kind="no-picture", reason="It is no file.", left_out=True, why=_NO_FILE)
        if not self._first:
            raise DataError(f"`{self._source}` has no `.npy` or `.npz` file that can be read.")

    @property
    def schema(self) -> Schema:
        """The parts are those of the first file; details hold its shapes."""
        names = tuple(name for name, _ in self._first)
        shapes = {name: list(shape) for name, shape in self._first}
        return Schema(kind="generic", parts=names, details={"shapes": shapes})

    def _name_in_labels(self, path: str) -> str | None:
        return next((name for name in (path, path.rpartition("/")[2]) if name in self._labels), None)

    def _sample(self, path: str) -> Sample | Problem:
        named = self._name_in_labels(path)
        if named is not None:
            self._used.add(named)
        split = split_of(path) if "/" in path else ""
        try:
            shapes = _shapes(self._root / path)
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            reason = f"It is no NumPy file of numbers ({error})."
            return Problem(key=path, kind="unreadable", reason=reason, left_out=True, split=split)
        self._first = self._first or shapes
        mine, wanted = (shapes, self._first) if self._same else _names(shapes, self._first)
        if mine != wanted:
            reason = f"It has {_shown(shapes)} where the first has {_shown(self._first)}."
            return Problem(key=path, kind="other-shape", reason=reason, left_out=True, split=split)
        label = None if named is None else self._labels[named]
        addresses = tuple(f"{path}#{name}" for name, _ in shapes)
        return Sample(
            key=path,
            parts=addresses,
            label=label,
            split=split,
            size_bytes=(self._root / path).stat().st_size,
        )


class _ArrayReader(PartReader):
    """Reads by addresses such as ``train/7.npz#x``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, address: str) -> np.ndarray:
        """Return an array as it is in the file; nothing in the file is ever executed."""
        path, _, name = address.rpartition("#")
        try:
            found = np.load(self._root / path, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            with found:
                return found[name]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DatapointError(path, f"it is no NumPy file of numbers ({error}).") from error

    def file(self, address: str) -> Path | None:
        """Return None: what a flow decodes is no NumPy file."""
        return None


# ---- files


def _files(root: Path) -> Iterator[str]:
    """Yield the paths of NumPy files, folder by folder, in the order of their names."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(place).relative_to(root).as_posix()
        chosen = sorted(name for name in names if name.lower().endswith(_SUFFIXES) and not name.startswith("."))
        yield from (name if below == "." else f"{below}/{name}" for name in chosen)


def _shapes(path: Path) -> Shapes:
    """Return name and shape of each array of a file, from their headers alone."""
    if path.suffix.lower() == ".npy":
        with path.open("rb") as file:
            return (("array", _shape(file)),)
    with zipfile.ZipFile(path) as archive:
        found = []
        for name in sorted(archive.namelist()):
            with archive.open(name) as file:
                found.append((name.removesuffix(".npy"), _shape(file)))
    if not found:
        raise ValueError("it holds no array")
    return tuple(found)


def _shape(file: Any) -> tuple[int, ...]:
    version = np.lib.format.read_magic(file)
    reads = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in reads:
        raise ValueError(f"version {version} of the format")
    shape, _fortran, dtype = reads[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape


def _names(shapes: Shapes, first: Shapes) -> tuple[Any, Any]:
    return [name for name, _ in shapes], [name for name, _ in first]


def _shown(shapes: Shapes) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes)


def _labels(root: Path, given: str, encoding: str) -> dict[str, Any]:
    path = root / given if given else next((root / name for name in _LABEL_FILES if (root / name).is_file()), None)
    if path is None:
        return {}
    try:
        text, _ = decode_text(path.read_bytes(), encoding, name=path.name)
        if path.suffix.lower() == ".json":
            return dict(json.loads(text))
        return dict(_labelled(row) for row in csv.reader(text.splitlines()) if row and row[1:2] != ["label"])
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            "Labels of arrays are a table `file,number…` or a JSON object.", received=f"`{path}`: {error}"
        ) from error


def _labelled(row: list[str]) -> tuple[str, Any]:
    numbers = [float(value) if not value.strip().lstrip("+-").isdigit() else int(value) for value in row[1:]]
    if not numbers:
        raise ValueError(f"{row[0]!r} without a label")
    return row[0], numbers[0] if len(numbers) == 1 else numbers


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent
