"""Readers and writers of flows as HDF5 files with one HDF5 dataset per component; needs the extra ``hdf5``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.formats.hdf5_columns import BYTES_MARK, DATA_PATHS, TableWriter
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.errors import DataError
from ziggurat.records.hdf5_file import HDF5File

__all__ = ["HDF5Data", "HDF5Serializer"]


class HDF5Data(IndexedFlow):
    """The rows of datasets of equal length in one HDF5 file: datapoint ``i`` is ``[dataset_0[i], dataset_1[i], …]``.

    Rows are read when they are needed. In a random order that is slow where the file is compressed or has large chunks:
    each row then costs a whole chunk.

    Args:
        filename: the file.
        data_paths: names of the datasets in the file, such as ``["data", "label"]``.
        shuffle: a new random order in every pass.

    Raises:
        DataError: where there is no such file, or no such datasets, or their lengths differ.
        MissingDependencyError: where h5py is not installed.
    """

    def __init__(self, filename: str | os.PathLike[str], data_paths: Sequence[str], shuffle: bool = True) -> None:
        super().__init__(shuffle=shuffle)
        self._file = HDF5File(filename)
        self.data_paths = list(data_paths)
        lengths = {name: _length(self._file, name) for name in self.data_paths}
        if len(set(lengths.values())) != 1:
            raise DataError(
                "The datasets of a flow have the same number of rows.",
                received=", ".join(f"{length} in `{name}`" for name, length in lengths.items()) or "no dataset",
                details={"path": os.fspath(filename)},
            )
        self._size = next(iter(lengths.values()))
        self.gathers = all(self._file[name].dtype.kind in "biufc" for name in self.data_paths)

    def __len__(self) -> int:
        return self._size

    def datapoint(self, index: int) -> list[Any]:
        """Return a row of each dataset; text as ``str``."""
        return [_row(self._file[name], index) for name in self.data_paths]

    def gather(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return the rows ``indices`` of each dataset."""
        return [_rows(self._file[name], indices) for name in self.data_paths]

    def close(self) -> None:
        """Close the file; the next pass opens it again."""
        self._file.close()
        super().close()


class HDF5Serializer:
    """Saves a flow as an HDF5 file with a dataset for each component."""

    @staticmethod
    def save(df: DataFlow, path: str | os.PathLike[str], data_paths: Sequence[str] | None = None) -> int:
        """Write one pass of ``df`` and return the number of datapoints.

        Args:
            df: a flow of lists or tuples; a component has the same type and shape in all of them, save that text and
                bytes may have any length. Python's numbers come back as NumPy's.
            path: file to make; nothing must stand there.
            data_paths: names of the datasets; ``component_0``, ``component_1``, … where None.

        Raises:
            StorageError: where something stands at ``path``, or the disk is full or refuses.
            DatapointError: where a component does not fit to the one of the first datapoint.
            DataError: where the flow has no datapoints.
        """
        with TableWriter(path, data_paths) as table:
            for point in df:
                table.append(point)
        return len(table)

    @staticmethod
    def load(path: str | os.PathLike[str], data_paths: Sequence[str] | None = None, shuffle: bool = True) -> HDF5Data:
        """Return a flow of the saved datapoints.

        Args:
            path: the file.
            data_paths: names of the datasets; those that were saved where None.
            shuffle: a new random order in every pass.

        Raises:
            DataError: as ``HDF5Data``, and where ``data_paths`` is None for a file that no serializer wrote.
        """
        if data_paths is None:
            file = HDF5File(path)
            saved = file.root.attrs.get(DATA_PATHS)
            if saved is None:
                raise DataError(
                    "The datasets of an HDF5 file are named, unless `HDF5Serializer` wrote it.",
                    received=f"`{os.fspath(path)}` with {', '.join(file.root) or 'no dataset'}",
                    advice="Give `data_paths`.",
                )
            data_paths = [str(name) for name in saved]
            file.close()
        return HDF5Data(path, data_paths, shuffle=shuffle)


def _length(file: HDF5File, name: str) -> int:
    root = file.root
    if name not in root or not getattr(root[name], "shape", ()):
        raise DataError(
            "A component is a dataset of the file, with a row for each datapoint.",
            received=f"`{name}`",
            advice=f"`{file.path}` has: {', '.join(root) or 'none'}.",
        )
    return root[name].shape[0]


def _row(dataset: Any, index: int) -> Any:
    row = dataset[index]
    if dataset.attrs.get(BYTES_MARK, False):
        return row.tobytes()
    return row.decode() if isinstance(row, bytes) and dataset.dtype.kind == "O" else row


def _rows(dataset: Any, indices: np.ndarray) -> np.ndarray:
    first, count = int(indices[0]) if len(indices) else 0, len(indices)
    if (np.diff(indices) == 1).all():
        return dataset[first : first + count]
    rows = np.empty((count, *dataset.shape[1:]), dataset.dtype)
    for place, index in enumerate(indices.tolist()):
        rows[place] = dataset[index]
    return rows
