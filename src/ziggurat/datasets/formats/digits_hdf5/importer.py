"""Importer for the HDF5 files of DIGITS and Caffe: ``data`` (N, C, H, W) float32, RGB, and ``label``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

import numpy as np

from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.folder_walk import folders_in
from ziggurat.datasets.formats.shared.numbered_classes import NumberedClasses, no_number
from ziggurat.datasets.formats.shared.text_files import lines_of, names_in
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample, split_of
from ziggurat.errors import DataError, DatapointError, MissingDependencyError
from ziggurat.records.hdf5_file import HDF5File
from ziggurat.records.schema import Schema

__all__ = ["DigitsHDF5Importer"]

_SUFFIXES: Final = (".h5", ".hdf5")
_NAME_FILES: Final = ("labels.txt", "classes.txt")
_BLOCK: Final = 10_000


class _File(NamedTuple):
    path: str
    split: str


class DigitsHDF5Importer(Importer):
    """Images with classes, or arrays with rows of numbers as labels."""

    name = "digits_hdf5"
    markers = _SUFFIXES
    title = "DIGITS and Caffe (HDF5)"
    kinds = ("image-classification", "generic")
    options = (
        ImporterOption(name="classes", type=str, default="", help="File with the name of class i in line i."),
        ImporterOption(
            name="kind",
            type=str,
            default="image-classification",
            choices=("image-classification", "generic"),
            help="Whether the values are images (0 to 255) with a class, or anything else.",
        ),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim files that hold ``data`` and ``label``."""
        found = _files(source)
        if not found:
            return None
        try:
            with_values = HDF5File(_root(source) / found[0].path)
            shapes = with_values["data"].shape, with_values["label"].shape
            is_image = _is_image(with_values)
            with_values.close()
        except (DataError, KeyError, AttributeError, MissingDependencyError):
            return None
        kind = "image-classification" if is_image else "generic"
        reason = f"HDF5 files with `data` {shapes[0]} and `label` {shapes[1]}, such as `{found[0].path}`"
        return Guess(format=self.name, confidence=0.93, reason=reason, kind=kind, options={"kind": kind})

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the files."""
        return _ValuesScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads one sample at a time."""
        return _ValuesReader(_root(source), options["kind"])


class _ValuesScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = _root(source)
        self._kind = options["kind"]
        self._classes = options["classes"]
        self._source = source
        self._files = _files(source)
        self._numbers = NumberedClasses()
        if not self._files:
            raise DataError(
                f"`{source}` has no HDF5 files of DIGITS, neither in `train_db` and `val_db` nor by themselves."
            )

    def __iter__(self) -> Iterator[Sample | Problem]:
        for each in self._files:
            values = HDF5File(self._root / each.path)
            try:
                yield from self._samples(each, values)
            finally:
                values.close()
        yield from self._not_taken()
        if self._kind != "generic":
            yield from self._numbers.problems(self._class_names(), self._files[0].path)

    def _not_taken(self) -> Iterator[Problem]:
        """Yield the files that lie beside the folders of splits."""
        taken = {each.path for each in self._files}
        for name in [] if self._source.is_file() else _names_in_folder(self._source):
            if name not in taken:
                reason = "It lies in no folder of a split."
                yield Problem(key=name, kind="other-files", reason=reason, names=1, why="their files are in no split")

    @property
    def schema(self) -> Schema:
        """Of classes, the names in ``labels.txt``."""
        if self._kind == "generic":
            return Schema(kind="generic")
        names = self._numbers.names(self._class_names())
        return completed(Schema(kind=self._kind, class_names=names), self._root)

    def _class_names(self) -> tuple[str, ...]:
        usual = (self._root / name for name in _NAME_FILES)
        path = self._root / self._classes if self._classes else next((p for p in usual if p.is_file()), None)
        return () if path is None else names_in(path)

    def _samples(self, each: _File, values: HDF5File) -> Iterator[Sample | Problem]:
        try:
            count, labels = len(values["data"]), values["label"]
        except (KeyError, TypeError) as error:
            raise _no_values(self._root / each.path, "without `data` or `label`") from error
        if len(labels) != count:
            raise _no_values(self._root / each.path, f"with {count} values in `data` and {len(labels)} in `label`")
        keys = values["keys"] if "keys" in values.root else None
        for start in range(0, count, _BLOCK):
            block = np.asarray(labels[start : start + _BLOCK])
            names = [] if keys is None else keys.asstr()[start : start + _BLOCK]
            for place, label in enumerate(block):
                number = start + place
                key = str(names[place]) if place < len(names) else f"{each.path}/{number:08d}"
                yield self._sample(each, number, key, label)

    def _sample(self, each: _File, number: int, key: str, label: np.ndarray) -> Sample | Problem:
        values = label.ravel().tolist()
        if self._kind == "generic":
            found = values[0] if label.ndim == 0 else values
        else:
            found = self._numbers.number(values[0]) if len(values) == 1 else None
            if found is None:
                return no_number(key, values, each.split)
        return Sample(key=key, parts=(f"{each.path}#{number}",), label=found, split=each.split)


class _ValuesReader(PartReader):
    """Reads by addresses such as ``train_db/0.h5#42``."""

    def __init__(self, root: Path, kind: str) -> None:
        self._root = root
        self._kind = kind
        self._files: dict[str, HDF5File] = {}

    def read(self, address: str) -> np.ndarray:
        """Return an image (H, W, C) uint8, RGB; of the kind ``generic`` the values as they are, (H, W, C)."""
        path, _, number = address.rpartition("#")
        try:
            values = self._files.setdefault(path, HDF5File(self._root / path))["data"][int(number)]
        except (DataError, KeyError, IndexError, ValueError, OSError) as error:
            raise DatapointError(address, f"it cannot be read ({error}).") from error
        values = np.ascontiguousarray(values.transpose(1, 2, 0)) if values.ndim == 3 else values
        return values if self._kind == "generic" else _as_image(values, address)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def _as_image(values: np.ndarray, address: str) -> np.ndarray:
    if values.ndim != 3 or values.shape[2] not in (1, 3):
        raise DatapointError(address, f"an image has one channel or three, and its values have {values.shape}.")
    pixels = np.rint(values)
    if not (np.isfinite(values).all() and pixels.min() >= 0 and pixels.max() <= 255):
        raise DatapointError(
            address,
            f"an image has values from 0 to 255, and it has {values.min():g} to {values.max():g}.",
            advice="Say `kind=generic` where the values are no images.",
        )
    return pixels.astype(np.uint8)


def _is_image(values: HDF5File) -> bool:
    """Whether the first sample looks like an image with the number of a class."""
    data, label = values["data"], values["label"]
    if data.ndim != 4 or data.shape[1] not in (1, 3) or not len(data) or label.ndim != 1:
        return False
    first, number = data[0], float(label[0])
    return bool(first.min() >= 0 and 1 < first.max() <= 255 and number.is_integer() and number >= 0)


def _files(source: Path) -> list[_File]:
    """Return the files of a source, by split, in the order of their lists or of the numbers in their names."""
    if source.is_file():
        return [_File(source.name, "")] if source.name.lower().endswith(_SUFFIXES) else []
    found = {name: split_of(name.partition("_")[0]) for name in folders_in(source)}
    by_split = [
        _File(f"{folder}/{name}", split)
        for split in SPLITS
        for folder in sorted(name for name, mine in found.items() if mine == split)
        for name in _names_in_folder(source / folder)
    ]
    return by_split or [_File(name, _split_of_file(name)) for name in _names_in_folder(source)]


def _names_in_folder(folder: Path) -> list[str]:
    names = [entry.name for entry in folder.iterdir() if entry.name.lower().endswith(_SUFFIXES)]
    listed = folder / "list.txt"
    if listed.is_file():  # it has the paths of the machine where it was written
        wanted = [PurePath(line.text.strip()).name for line in lines_of(listed)]
        if sorted(wanted) == sorted(names):
            return wanted
    return sorted(
        names, key=lambda name: (int(stem), name) if (stem := PurePath(name).stem).isdecimal() else (-1, name)
    )


def _split_of_file(name: str) -> str:
    words = PurePath(name).stem.replace("-", "_").split("_")
    return next((split_of(word) for word in words if split_of(word)), "")


def _no_values(path: Path, received: str) -> DataError:
    return DataError(f"`{path}` {received}, not `data` and `label`, one of each for a sample.")


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent
