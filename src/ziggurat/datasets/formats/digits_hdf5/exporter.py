"""Export of a classification dataset in the layout of DIGITS: HDF5 files with ``data`` and ``label``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.shared.digits_files import ImageShape, write_mean
from ziggurat.datasets.formats.shared.exports import Export, ExportReport
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.records.hdf5_file import NewHDF5File, require_h5py

__all__ = ["export_digits_hdf5"]

_COMPRESSIONS: Final = ("none", "gzip")
_BLOCK: Final = 100


def export_digits_hdf5(
    dataset: Dataset, folder: Path, *, compression: str = "none", elements_per_file: int = 2**31
) -> ExportReport:
    """Write ``train_db/0.h5`` and so on, ``list.txt`` in each folder, ``labels.txt`` and the mean image.

    A file has ``data`` (N, C, H, W) float32, RGB, ``label`` (N) float32, and for our own importer ``keys``. Its name is
    the number of its first sample. ``list.txt`` has the names of the files, to be read from their folder.

    Args:
        dataset: of kind image-classification, with images of one size; those of another size are left out.
        folder: new or empty.
        compression: ``none`` or ``gzip``.
        elements_per_file: most values in ``data``; Caffe reads no more than 2**31.

    Raises:
        DataError: where the dataset is of another kind.
        UnknownNameError: where there is no such compression.
        ConfigurationError: where a file is to hold nothing.
        StorageError: where the folder is not empty, or the disk is full or refuses.
        MissingDependencyError: where h5py is not installed.
    """
    if compression not in _COMPRESSIONS:
        raise UnknownNameError("compression of an HDF5 file", compression, _COMPRESSIONS)
    if elements_per_file < 1:
        raise ConfigurationError("A file holds at least one value.", received=str(elements_per_file))
    require_h5py()
    export = Export(dataset, folder, "digits_hdf5", ("image-classification",))
    shape = ImageShape(export)
    for split in dataset.splits:
        place = export.folder / f"{split or 'all'}_db"
        with storage_errors(place):
            place.mkdir()
            with _Files(place, compression, elements_per_file) as files:
                for sample in export.samples(split):
                    pixels = shape.pixels(dataset, sample)
                    if pixels is not None:
                        files.add(pixels, sample.label, sample.key)
        export.counts[split] = files.count
        export.write(f"{place.name}/list.txt", "".join(f"{name}\n" for name in files.names))
    export.write_class_names("labels.txt")
    write_mean(export)
    return export.report()


class _Files:
    """The files of one split; a new one begins where the last would hold too many values."""

    def __init__(self, folder: Path, compression: str, most: int) -> None:
        self._folder = folder
        self._compression = None if compression == "none" else compression
        self._most = most
        self._file: NewHDF5File | None = None
        self._inside = 0
        self._waiting: list[tuple[np.ndarray, int, str]] = []
        self.count = 0
        self.names: list[str] = []

    def add(self, pixels: np.ndarray, label: int, key: str) -> None:
        values = pixels.transpose(2, 0, 1)
        if self._file is None or (self._inside + 1) * values.size > self._most:
            self._begin(values.shape)
        self._waiting.append((values, label, key))
        self._inside += 1
        self.count += 1
        if len(self._waiting) >= _BLOCK:
            self._write()

    def _begin(self, shape: tuple[int, ...]) -> None:
        self._end()
        self.names.append(f"{self.count}.h5")
        self._file = NewHDF5File(self._folder / self.names[-1])
        text: Any = require_h5py().string_dtype()
        kinds: tuple[tuple[str, tuple[int, ...], Any], ...] = (
            ("data", shape, np.float32),
            ("label", (), np.float32),
            ("keys", (), text),
        )
        for name, one, kind in kinds:
            self._file.root.create_dataset(
                name, (0, *one), kind, maxshape=(None, *one), chunks=True, compression=self._compression
            )
        self._inside = 0

    def _write(self) -> None:
        if self._file is None or not self._waiting:
            return
        values, labels, keys = zip(*self._waiting, strict=True)
        for name, block in (("data", np.stack(values)), ("label", np.array(labels)), ("keys", list(keys))):
            stored = self._file.root[name]
            stored.resize(self._inside, axis=0)
            stored[self._inside - len(block) :] = block
        self._file.check()
        self._waiting.clear()

    def _end(self) -> None:
        self._write()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        if kind is None:
            self._end()
        elif self._file is not None:
            self._file.abandon()
