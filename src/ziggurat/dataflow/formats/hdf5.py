"""Readers and writers of flows as HDF5 files with one HDF5 dataset per component; needs the extra ``hdf5``.

A writer collects datapoints in blocks of bounded size.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.hdf5_file import HDF5File, NewHDF5File, require_h5py

__all__ = ["HDF5Data", "HDF5Serializer"]

BYTES_MARK = "ziggurat_bytes"
"""Attribute of a dataset whose rows are ``bytes``, not arrays of uint8."""
DATA_PATHS = "ziggurat_data_paths"
"""Attribute of a file: the names of its datasets in the order of the components."""
_CHUNK_BYTES = 64 << 10
_BLOCK_BYTES = 4 << 20
_BLOCK_ROWS = 4096


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
            f"`{name}` is no dataset of the file with a row for each datapoint.",
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


class TableWriter:
    """Writes a file; it gets its name when the ``with`` block ends without an error.

    Args:
        path: file to make; nothing must stand there.
        data_paths: names of the datasets; ``component_0``, ``component_1``, … where None.

    Raises:
        StorageError: where something stands at ``path``, or the disk is full or refuses (also from every method).
        MissingDependencyError: where h5py is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], data_paths: Sequence[str] | None) -> None:
        self._path = path
        self._names = None if data_paths is None else list(data_paths)
        self._target = AtomicFile(path)
        self._columns: list[_ColumnWriter] = []
        self._count = 0
        with storage_errors(path):
            self._file = NewHDF5File(self._target.path)

    def __len__(self) -> int:
        return self._count

    def append(self, point: Any) -> None:
        """Add a datapoint.

        Raises:
            DatapointError: where it does not fit to the first one.
        """
        number = self._count
        wanted = len(self._columns) or (len(self._names) if self._names is not None else None)
        if not isinstance(point, list | tuple) or not point or len(point) != (wanted or len(point)):
            got = f"{len(point)} components" if isinstance(point, list | tuple) else type(point).__name__
            raise DatapointError(number, f"it is {got} and no list of {wanted or 'one or more'} components.")
        with storage_errors(self._path):
            if not self._columns:
                self._create(point)
            for column, value in zip(self._columns, point, strict=True):
                column.append(value, number)
            self._file.check()
        self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        try:
            if kind is None:
                self._finish()
            else:
                self._file.abandon()
        except BaseException:
            self._file.abandon()
            raise
        finally:
            self._target.discard()

    def _create(self, point: Sequence[Any]) -> None:
        names = self._names or [f"component_{place}" for place in range(len(point))]
        self._columns = [_ColumnWriter(self._file.root, name, value) for name, value in zip(names, point, strict=True)]
        self._file.root.attrs[DATA_PATHS] = names

    def _finish(self) -> None:
        if not self._columns:
            raise DataError("An HDF5 file is made of at least one datapoint.", received="a flow without datapoints")
        with storage_errors(self._path):
            for column in self._columns:
                column.flush()
            self._file.close()
        self._target.publish()


class _ColumnWriter:
    """Writes one component.

    Args:
        file: an open ``h5py.File``.
        name: name of the dataset.
        example: the component of the first datapoint, which fixes type and shape.

    Raises:
        DatapointError: where ``example`` is of a type that HDF5 has not.
    """

    def __init__(self, file: Any, name: str, example: Any) -> None:
        h5py = require_h5py()
        self._name = name
        self._kind: type | None = type(example) if isinstance(example, str | bytes) else None
        self._shape: tuple[int, ...] = ()
        row_bytes = 64
        if self._kind is str:
            self._dtype: Any = h5py.string_dtype()
        elif self._kind is bytes:
            self._dtype = h5py.vlen_dtype(np.uint8)
        else:
            array = np.asarray(example)
            if array.dtype.kind not in "biufc":
                raise DatapointError(
                    0,
                    f"component `{name}` is {type(example).__name__} of dtype {array.dtype}, which HDF5 has not.",
                    advice="Save numbers, arrays of them, text or bytes; or use `LMDBSerializer`.",
                )
            self._dtype, self._shape, row_bytes = array.dtype, array.shape, max(1, array.nbytes)
        self._row_bytes = row_bytes
        rows = max(1, _CHUNK_BYTES // row_bytes)
        self._dataset = file.create_dataset(
            name, (0, *self._shape), dtype=self._dtype, maxshape=(None, *self._shape), chunks=(rows, *self._shape)
        )
        if self._kind is bytes:
            self._dataset.attrs[BYTES_MARK] = True
        self._block: list[Any] = []
        self._block_bytes = 0

    def append(self, value: Any, number: int) -> None:
        """Add the component of datapoint ``number``.

        Raises:
            DatapointError: where its type or shape differs from that of the first datapoint.
        """
        self._block.append(value if self._kind is not None else np.asarray(value))
        self._require_fit(value, number)
        self._block_bytes += len(value) if self._kind is not None else self._row_bytes
        if self._block_bytes >= _BLOCK_BYTES or len(self._block) >= _BLOCK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is held back."""
        start = self._dataset.shape[0]
        self._dataset.resize(start + len(self._block), axis=0)
        if self._kind is bytes:
            for place, value in enumerate(self._block, start):
                self._dataset[place] = np.frombuffer(value, np.uint8)
        elif self._block:
            self._dataset[start:] = self._block if self._kind is str else np.stack(self._block)
        self._block, self._block_bytes = [], 0

    def _require_fit(self, value: Any, number: int) -> None:
        if self._kind is not None:
            if not isinstance(value, self._kind):
                raise self._misfit(number, type(value).__name__, self._kind.__name__)
            return
        array = self._block[-1]
        if array.shape != self._shape or array.dtype != self._dtype:
            raise self._misfit(number, f"{array.dtype} {array.shape}", f"{self._dtype} {self._shape}")

    def _misfit(self, number: int, odd: str, usual: str) -> DatapointError:
        return DatapointError(
            number,
            f"component `{self._name}` is {odd}, and that of the first datapoint {usual}.",
            advice="Make them equal, for example with MapData, or use `LMDBSerializer`.",
        )
