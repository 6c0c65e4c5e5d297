"""Writer of datapoints to an HDF5 file with one HDF5 dataset per component, in blocks of bounded size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.hdf5_file import NewHDF5File, require_h5py

__all__ = ["BYTES_MARK", "DATA_PATHS", "TableWriter"]

BYTES_MARK = "ziggurat_bytes"
"""Attribute of a dataset whose rows are ``bytes``, not arrays of uint8."""
DATA_PATHS = "ziggurat_data_paths"
"""Attribute of a file: the names of its datasets in the order of the components."""
_CHUNK_BYTES = 64 << 10
_BLOCK_BYTES = 4 << 20
_BLOCK_ROWS = 4096


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
