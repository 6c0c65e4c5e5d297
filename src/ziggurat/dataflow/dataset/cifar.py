"""CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009).

The readers accept both published versions: the binary one, and the one in Python pickles, which they read as plain
arrays or refuse. Each may be unpacked or in its archive.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ziggurat.dataflow.dataset.files import Download, find_files, require_split, set_folder
from ziggurat.dataflow.indexed import ArraySet
from ziggurat.errors import DataError
from ziggurat.records.plain_pickle import ARRAY_NAMES, load_plain_pickle

__all__ = ["Cifar10", "Cifar100", "CifarBase"]

_PIXELS = 3 * 32 * 32


class CifarBase(ArraySet):
    """What both sets share: datapoints ``[image, label]``, (32, 32, 3) uint8 RGB and int.

    Args:
        train_or_test: "train" (50,000) or "test" (10,000).
        shuffle: a new random order in every pass; None shuffles the training set only.
        dir: folder with the archive, or with the files in it.
        download: fetch the archive into ``dir`` where it is missing.

    Raises:
        DataError: where files are missing or damaged; the message names them.
    """

    names: ClassVar[tuple[str, ...]]
    archives: ClassVar[tuple[Download, ...]]
    parts: ClassVar[dict[str, tuple[str, ...]]]
    label_bytes: ClassVar[int]
    label_key: ClassVar[bytes]
    meta: ClassVar[tuple[str, str, bytes]]
    """Names of the file with the class names, as text and as a pickle, and the key in the pickle."""

    def __init__(
        self,
        train_or_test: str,
        shuffle: bool | None = None,
        dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the name of Tensorpack's argument
        *,
        download: bool = False,
    ) -> None:
        reader = type(self).__name__
        require_split(reader, train_or_test, ("train", "test"))
        self.split = train_or_test
        folder = set_folder(reader, dir, *self.names)
        # The archive unpacks into a folder of its own.
        self._folder = next((folder / name for name in self.names if (folder / name).is_dir()), folder)
        self._files = self._find(self.parts[train_or_test], download=download)
        super().__init__(shuffle=train_or_test == "train" if shuffle is None else shuffle)

    def get_label_names(self) -> list[str]:
        """Return the names of the classes, from the file that comes with the set.

        Raises:
            DataError: where that file is missing.
        """
        as_text, as_pickle, key = self.meta
        for name, data in _contents(self._find([as_text, as_pickle], any_of=True), [as_text, as_pickle]):
            if name == as_text:
                return data.decode().split()
            return [label.decode() for label in _plain(data, Path(name))[key]]
        raise DataError(f"`{self._folder}` has no `{as_text}`, which names the classes.")

    def get_per_pixel_mean(self, names: Sequence[str] = ("train", "test")) -> np.ndarray:
        """Return the mean image of the given splits, (32, 32, 3) float64 RGB, from 0 to 255."""
        total, count = np.zeros((32, 32, 3)), 0
        for name in names:
            require_split(type(self).__name__, name, ("train", "test"))
            images = (
                self.images if name == self.split else self._read(self._find(self.parts[name]), self.parts[name])[0]
            )
            total += images.sum(axis=0, dtype=np.int64)
            count += len(images)
        return total / count

    def get_per_channel_mean(self, names: Sequence[str] = ("train", "test")) -> np.ndarray:
        """Return the mean of each channel over the given splits, (3,) float64 RGB, from 0 to 255."""
        return self.get_per_pixel_mean(names).mean(axis=(0, 1))

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        return self._read(self._files, self.parts[self.split])

    def _label(self, label: Any) -> int:
        return int(label)

    def _find(self, parts: Sequence[str], *, download: bool = False, any_of: bool = False) -> list[Path]:
        """Return the files of parts, or the archive that holds them."""
        found = [path for part in parts for path in _variants(self._folder, part) if path.is_file()]
        if len(found) >= (1 if any_of else len(parts)):
            return found
        archive = [[item.name for item in self.archives]]
        return find_files(type(self).__name__, self._folder, archive, downloads=self.archives[:1], download=download)

    def _read(self, files: Sequence[Path], parts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        names = [path.name for part in parts for path in _variants(Path(), part)]
        images, labels = [], []
        for name, data in sorted(_contents(files, names)):
            rows, numbers = self._rows(data, Path(name))
            images.append(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            labels.append(numbers)
        if len(images) != len(parts):
            raise DataError(
                f"`{self._folder}` has {len(images)} of {len(parts)} parts: `{type(self).__name__}` reads "
                f"{', '.join(parts)}."
            )
        return np.ascontiguousarray(np.concatenate(images)), np.concatenate(labels)

    def _rows(self, data: bytes, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return (N, 3072) uint8 and (N,) int64 of one file."""
        if path.suffix == ".bin":
            row_bytes = self.label_bytes + _PIXELS
            if len(data) % row_bytes or not data:
                raise _damaged(path, f"{len(data)} bytes, and a row has {row_bytes}")
            rows = np.frombuffer(data, np.uint8).reshape(-1, row_bytes)
            return rows[:, self.label_bytes :], rows[:, self.label_bytes - 1].astype(np.int64)
        batch = _plain(data, path)
        try:
            pixels, labels = np.asarray(batch[b"data"]), np.asarray(batch[self.label_key], np.int64)
            if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS):
                raise ValueError(f"pixels of shape {pixels.shape}, {pixels.dtype}, for {len(labels)} labels")
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path, error) from error
        return pixels, labels


class Cifar10(CifarBase):
    """60,000 small photographs of ten classes; see ``CifarBase`` for the arguments."""

    names = ("cifar-10-batches-bin", "cifar-10-batches-py", "cifar10", "cifar10_data")
    archives = (
        Download(
            "cifar-10-binary.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
        Download(
            "cifar-10-python.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
    )
    parts = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
    label_bytes = 1
    label_key = b"labels"
    meta = ("batches.meta.txt", "batches.meta", b"label_names")


class Cifar100(CifarBase):
    """60,000 small photographs of a hundred classes, with the fine labels; see ``CifarBase`` for the arguments."""

    names = ("cifar-100-binary", "cifar-100-python", "cifar100", "cifar100_data")
    archives = (
        Download(
            "cifar-100-python.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
            "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        ),
        Download("cifar-100-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", ""),
    )
    parts = {"train": ("train",), "test": ("test",)}
    label_bytes = 2
    label_key = b"fine_labels"
    meta = ("fine_label_names.txt", "meta", b"fine_label_names")


def _variants(folder: Path, part: str) -> list[Path]:
    return [folder / f"{part}.bin", folder / part]


def _contents(files: Sequence[Path], names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of those of ``names`` that are among the files, or in the archive among them."""
    for path in files:
        if path.suffixes[-2:] != [".tar", ".gz"]:
            yield path.name, path.read_bytes()
            continue
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    name = member.name.rsplit("/", 1)[-1]
                    file = archive.extractfile(member) if name in names else None
                    if file is not None:
                        yield name, file.read()
        except (tarfile.TarError, EOFError, OSError) as error:
            raise _damaged(path, error) from error


def _plain(data: bytes, path: Path) -> Any:
    batch = load_plain_pickle(data, names=ARRAY_NAMES)
    if not isinstance(batch, dict):
        raise _damaged(path, f"a {type(batch).__name__} instead of a dict")
    return batch


def _damaged(path: Path, reason: object) -> DataError:
    return DataError(
        "A file of CIFAR is read as it was published.", received=f"`{path}`: {reason}", advice="Get it anew."
    )
