"""Importer for the Python batches of CIFAR-10 and CIFAR-100; of their pickles, plain values are read alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan, read_source_file
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, DatapointError
from ziggurat.formatting import plural
from ziggurat.records.plain_pickle import ARRAY_NAMES, load_plain_pickle
from ziggurat.records.schema import Schema

__all__ = ["CifarImporter"]

_SIDE: Final = 32
_VALUES: Final = 3 * _SIDE * _SIDE
_LARGEST_BYTES: Final = 1 << 30
_TEN: Final = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
_HUNDRED: Final = ("train", "test")
_LABELS: Final = {"fine": (b"fine_labels", b"fine_label_names"), "coarse": (b"coarse_labels", b"coarse_label_names")}


class CifarImporter(Importer):
    """``data_batch_1`` to ``test_batch`` with ``batches.meta``, or ``train`` and ``test`` with ``meta``."""

    name = "cifar"
    title = "CIFAR (Python batches)"
    kinds = ("image-classification",)
    markers = ("",)  # its batches have no ending
    options = (
        ImporterOption(
            name="labels",
            type=str,
            default="fine",
            help="Classes of CIFAR-100: the 100 fine or the 20 coarse ones.",
            choices=tuple(_LABELS),
        ),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim a folder by the names of its files and the first bytes of one."""
        files = _files(source)
        if not files or _start(source / files[0]) != b"\x80":
            return None
        is_ten = files[0] in _TEN
        reason = f"{len(files)} batches of CIFAR-{'10' if is_ten else '100, with fine and coarse classes'}"
        return Guess(format=self.name, confidence=0.97, reason=f"{reason}.", kind="image-classification")

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the batches."""
        return _CifarScan(source, options["labels"])

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads one image at a time."""
        return _CifarReader(source)


class _CifarScan(Scan):
    def __init__(self, source: Path, labels: str) -> None:
        self._source, self._files = source, _files(source)
        if not self._files:
            raise DataError(
                f"`{source}` has no files of CIFAR: `data_batch_1` to `test_batch`, or `train` and `test` with `meta`."
            )
        is_ten = self._files[0] in _TEN
        self._label_field, names_field = (b"labels", b"label_names") if is_ten else _LABELS[labels]
        meta = source / ("batches.meta" if is_ten else "meta")
        content = read_batch(meta) if meta.is_file() else {}
        names = content.get(names_field)
        self._names = tuple(_text(name) for name in names) if isinstance(names, list) else ()
        self._highest = -1

    def __iter__(self) -> Iterator[Sample | Problem]:
        for file in self._files:
            content = read_batch(self._source / file)
            images, labels = images_of(content, file), content.get(self._label_field)
            if not isinstance(labels, list) or len(labels) != len(images):
                count = plural(len(labels), "label") if isinstance(labels, list) else "no labels"
                raise DataError(
                    f"The batch `{file}` has {plural(len(images), 'image')} and {count}.",
                    advice="It is damaged: get it again.",
                )
            split = "test" if file.startswith("test") else "train"
            for number, label in enumerate(labels):
                key = f"{file}/{number:05d}"
                if type(label) is not int or label < 0 or (self._names and label >= len(self._names)):
                    reason = f"Its label {str(label)[:20]} is none of the classes."
                    yield Problem(key=key, kind="unknown-class", reason=reason, left_out=True, split=split)
                    continue
                self._highest = max(self._highest, label)
                yield Sample(key=key, parts=(f"{file}#{number}",), label=label, split=split)

    @property
    def schema(self) -> Schema:
        """Classes by number if their file is not there."""
        names = self._names or tuple(str(number) for number in range(self._highest + 1))
        return Schema(kind="image-classification", class_names=names)


class _CifarReader(PartReader):
    """Reads by addresses such as ``data_batch_1#42``; the images of the last batch are kept."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._kept: tuple[str, np.ndarray] = ("", np.zeros((0, _VALUES), np.uint8))

    def read(self, address: str) -> np.ndarray:
        """Return an image (32, 32, 3) uint8."""
        file, _, number = address.rpartition("#")
        try:
            if self._kept[0] != file:
                self._kept = file, images_of(read_batch(self._source / file), file)
            values = self._kept[1][int(number)]
        except (DataError, ValueError, IndexError) as error:
            raise DatapointError(address, str(error)) from error
        return np.ascontiguousarray(values.reshape(3, _SIDE, _SIDE).transpose(1, 2, 0))


def read_batch(path: Path) -> dict[Any, Any]:
    """Return what a batch holds, by names in bytes.

    Raises:
        DataError: where it is no batch, or asks for anything but plain values and arrays.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise DataError("A batch of CIFAR has at most 1 GiB.", received=f"`{path.name}`")
        found = load_plain_pickle(read_source_file(path), names=ARRAY_NAMES)
    except (OSError, DatapointError) as error:
        raise DataError(f"The batch `{path.name}` of CIFAR cannot be read: {str(error).rstrip('.')}.") from None
    if not isinstance(found, dict):
        raise DataError(f"The batch `{path.name}` of CIFAR holds a {type(found).__name__}, not names and values.")
    return {name.encode("latin-1", "replace") if isinstance(name, str) else name: each for name, each in found.items()}


def images_of(content: Mapping[Any, Any], file: str) -> np.ndarray:
    """Return the images of a batch, (N, 3072) uint8.

    Raises:
        DataError: where it has none of that form.
    """
    images = content.get(b"data")
    if isinstance(images, np.ndarray) and images.dtype == np.uint8 and images.ndim == 2 and images.shape[1] == _VALUES:
        return images
    form = f"{images.dtype} of {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
    raise DataError(
        f"The images of `{file}` are not rows of {_VALUES} bytes: {form}.",
        advice="It is damaged, or of another size: get it again.",
    )


def _files(source: Path) -> list[str]:
    if not source.is_dir():
        return []
    if (source / "data_batch_1").is_file():
        return [name for name in _TEN if (source / name).is_file()]
    if (source / "meta").is_file():
        return [name for name in _HUNDRED if (source / name).is_file()]
    return []


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1)
    except OSError:
        return b""


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
