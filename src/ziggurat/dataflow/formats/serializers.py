"""Serializers that save a flow to a file and load it: LMDB, TFRecord and npz (HDF5 is in ``hdf5.py``).

``ziggurat.records.codec`` encodes the datapoints: lists, tuples, dicts, numbers, text, bytes and arrays are restored
unchanged. A file gets its final name only when it is complete.
"""

from __future__ import annotations

import os
import zipfile
from functools import partial

import numpy as np

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.formats.records import PickledDataError, RecordsFlow, decode_value
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.base import RecordReader, RecordWriter
from ziggurat.records.codec import EncodingError, pack
from ziggurat.records.lmdb_store import LMDBReader, LMDBWriter
from ziggurat.records.stores import NpzReader, NpzWriter
from ziggurat.records.tfrecord import TFRecordReader, TFRecordWriter

__all__ = ["LMDBSerializer", "NumpySerializer", "SavedFlow", "TFRecordSerializer"]

_Path = str | os.PathLike[str]


class SavedFlow(RecordsFlow):
    """The datapoints of a saved flow.

    Args:
        reader: the store that a serializer wrote.
        shuffle: a new random order in every pass.
        allow_pickle: whether pickled values are read.
    """

    def __init__(self, reader: RecordReader, *, shuffle: bool, allow_pickle: bool = False) -> None:
        super().__init__(reader, shuffle=shuffle)
        self.allow_pickle = allow_pickle
        if len(self):  # a file that cannot be read at all is best refused before training begins
            self.datapoint(0)

    def datapoint(self, index: int) -> Datapoint:
        """Return a datapoint, with arrays that may be written to."""
        reader = self.reader
        return decode_value(partial(reader.key, index), reader.get(index), allow_pickle=self.allow_pickle)


class LMDBSerializer:
    """Saves a flow as an LMDB file, in the layout that Tensorpack's ``LMDBData`` reads (its values are no pickles)."""

    @staticmethod
    def save(df: DataFlow, path: _Path, write_frequency: int = 5000) -> int:
        """Write one pass of ``df`` and return the number of datapoints.

        Args:
            df: a flow of plain data.
            path: file to make; nothing must stand there.
            write_frequency: accepted for Tensorpack's programs; records are written in batches of bounded size.

        Raises:
            StorageError: where something stands at ``path``, or the disk is full or refuses.
            DatapointError: where a datapoint holds something else than plain data.
        """
        return _save(df, LMDBWriter(path))

    @staticmethod
    def load(path: _Path, shuffle: bool = True, *, allow_pickle: bool = False) -> DataFlow:
        """Return a flow of the saved datapoints.

        Args:
            path: the file; Tensorpack may have written it.
            shuffle: a new random order in every pass.
            allow_pickle: also read values that Tensorpack pickled. Only for files that you trust: a pickle can run any
                code.

        Raises:
            DataError: where it is no such file; ``PickledDataError`` where it holds pickles that are not allowed.
        """
        return SavedFlow(LMDBReader(path), shuffle=shuffle, allow_pickle=allow_pickle)


class TFRecordSerializer:
    """Saves a flow as a TFRecord file with a side file ``NAME.index``; TensorFlow is not needed."""

    @staticmethod
    def save(df: DataFlow, path: _Path) -> int:
        """Write one pass of ``df`` and return the number of datapoints; errors as in ``LMDBSerializer.save``."""
        return _save(df, TFRecordWriter(path))

    @staticmethod
    def load(path: _Path, size: int | None = None, *, shuffle: bool = False, allow_pickle: bool = False) -> DataFlow:
        """Return a flow of the saved datapoints; arguments and errors as in ``LMDBSerializer.load``.

        Args:
            path: the file.
            size: how many datapoints it holds, as Tensorpack's programs say; it is known without.
            shuffle: a new random order in every pass.
            allow_pickle: also read values that Tensorpack pickled.
        """
        flow = SavedFlow(TFRecordReader(path), shuffle=shuffle, allow_pickle=allow_pickle)
        if size is not None and size != len(flow):
            raise DataError(
                f"`size` is {size}, and `{os.fspath(path)}` has {len(flow)} datapoints.",
                advice="Leave it out; use `FixedSizeData` for passes of another length.",
            )
        return flow


class NumpySerializer:
    """Saves a flow as an uncompressed ``.npz`` file, which needs no further package to be opened."""

    @staticmethod
    def save(df: DataFlow, path: _Path) -> int:
        """Write one pass of ``df`` and return the number of datapoints; errors as in ``LMDBSerializer.save``."""
        return _save(df, NpzWriter(path))

    @staticmethod
    def load(path: _Path, shuffle: bool = True, *, allow_pickle: bool = False) -> DataFlow:
        """Return a flow of the saved datapoints; arguments and errors as in ``LMDBSerializer.load``.

        A file of Tensorpack's, which is a pickle as a whole, is read into memory.
        """
        if not _is_of_tensorpack(path):
            return SavedFlow(NpzReader(path), shuffle=shuffle, allow_pickle=allow_pickle)
        if not allow_pickle:
            raise PickledDataError("buffer")
        with np.load(path, allow_pickle=True) as arrays:
            return DataFromList(list(arrays["buffer"]), shuffle=shuffle)


def _is_of_tensorpack(path: _Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return archive.namelist() == ["buffer.npy"]


def _save(df: DataFlow, writer: RecordWriter) -> int:
    with writer:
        for number, point in enumerate(df):
            try:
                writer.append(None, pack(point))
            except EncodingError as error:
                raise DatapointError(number, f"it cannot be saved. {error}") from error
    return len(writer)
