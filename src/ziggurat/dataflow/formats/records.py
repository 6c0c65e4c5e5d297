"""Flows that read LMDB stores and TFRecord files; TensorFlow is not needed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.base import RecordReader
from ziggurat.records.codec import DecodingError, unpack
from ziggurat.records.lmdb_store import LMDBReader
from ziggurat.records.tfrecord import TFRecordReader

__all__ = [
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "PickledDataError",
    "RecordsFlow",
    "TFRecordData",
    "decode_value",
]

_PICKLE = b"\x80"


class PickledDataError(DataError):
    """Saved datapoints are pickles, which are read only on request."""

    code = "pickled_data"

    def __init__(self, key: Any) -> None:
        super().__init__(
            "A record holds a pickle, which can run any code that its author chose, so it is read only on request.",
            received=f"a pickled value in record {_text(key)!r}, as Tensorpack writes them",
            advice="If you trust the file, pass `allow_pickle=True`, and save the flow anew to be rid of the pickles.",
        )


class RecordsFlow(IndexedFlow):
    """A flow over the records of a store: datapoints ``[key, value]``, text and bytes.

    Args:
        reader: the store.
        shuffle: a new random order in every pass.
        on_error: what happens with a record that cannot be read: "raise", "skip", "log", or an ``ErrorPolicy``.
    """

    def __init__(
        self, reader: RecordReader, *, shuffle: bool = False, on_error: OnError | ErrorPolicy = "raise"
    ) -> None:
        super().__init__(shuffle=shuffle)
        self.policy = ErrorPolicy.of(on_error)
        self._reader = reader
        self._closed = False

    @property
    def path(self) -> str:
        """Where the store is."""
        return os.fspath(self._reader.path)

    @property
    def reader(self) -> Any:
        """The store, open."""
        if self._closed:
            self._reader.reopen()
            self._closed = False
        return self._reader

    def __len__(self) -> int:
        return len(self._reader)

    def key(self, index: int) -> str:
        """Return the key of a record."""
        return self.reader.key(index)

    def datapoint(self, index: int) -> list[Any]:
        """Return key and value of a record."""
        return list(self.reader.item(index))

    def close(self) -> None:
        """Close the store; the next pass opens it again."""
        self._reader.close()
        self._closed = True
        super().close()


class LMDBData(RecordsFlow):
    """The records of an LMDB store: datapoints ``[key, value]``, both bytes.

    Args:
        lmdb_path: the file, or a folder with ``data.mdb`` in it. Any program may have written it.
        shuffle: a new random order in every pass.
        keys: the database's keys to read, as a list (text or bytes); or a format such as ``"{:08d}"``, filled with 0,
            1, 2, … for all records. Needed only where the store has no list of keys of its own and walking through it
            once is too slow.
        on_error: what happens with a record that cannot be read: "raise", "skip", "log", or an ``ErrorPolicy``.

    The key is the one that the record was given (see ``ziggurat.records``), or else that of the database.

    Raises:
        DataError: where there is no LMDB store.
    """

    def __init__(
        self,
        lmdb_path: str | os.PathLike[str],
        shuffle: bool = True,
        keys: Sequence[str | bytes] | str | None = None,
        *,
        on_error: OnError | ErrorPolicy = "raise",
    ) -> None:
        if isinstance(keys, str):
            with LMDBReader(lmdb_path) as reader:
                keys = [keys.format(number) for number in range(len(reader))]
        names = None if keys is None else [key.encode() if isinstance(key, str) else key for key in keys]
        super().__init__(LMDBReader(lmdb_path, keys=names), shuffle=shuffle, on_error=on_error)

    def datapoint(self, index: int) -> list[Any]:
        """Return key and value of a record."""
        key, value = super().datapoint(index)
        return [key.encode("utf-8", "surrogateescape"), value]


class LMDBDataDecoder(MapData):
    """``decoder(key, value)`` of each record.

    Args:
        lmdb_data: an ``LMDBData``, or stages over one that leave its datapoints as they are.
        decoder: gets key and value as bytes, and returns a datapoint, or None to drop the record.
        on_error: what happens when it raises: "raise", "skip", "log", or an ``ErrorPolicy``.
    """

    def __init__(
        self,
        lmdb_data: DataFlow,
        decoder: Callable[..., Datapoint | None],
        *,
        on_error: OnError | ErrorPolicy = "raise",
    ) -> None:
        super().__init__(lmdb_data, decoder, on_error=on_error)

    def apply(self, point: Datapoint, **rng: Any) -> Datapoint | None:
        """Return what becomes of one record."""
        return self.func(point[0], point[1], **rng)


class LMDBDataPoint(LMDBDataDecoder):
    """The datapoints that ``LMDBSerializer`` wrote.

    Args:
        lmdb_data: an ``LMDBData`` or stages over one; or what ``LMDBData`` takes, then with its further arguments.
        allow_pickle: also read values that Tensorpack pickled. Only for files that you trust: a pickle can run any
            code.
    """

    def __init__(self, lmdb_data: Any, *args: Any, allow_pickle: bool = False, **options: Any) -> None:
        flow = lmdb_data if isinstance(lmdb_data, DataFlow) else LMDBData(lmdb_data, *args, **options)
        self.allow_pickle = allow_pickle
        super().__init__(flow, decode_value)

    def apply(self, point: Datapoint, **_rng: Any) -> Datapoint:
        """Return the datapoint in one record."""
        return decode_value(point[0], point[1], allow_pickle=self.allow_pickle)


class TFRecordData(RecordsFlow):
    """The records of a TFRecord file: datapoints ``[value]``, bytes.

    Any record can be read at any time: the file is scanned once where it has no side file ``NAME.index``.

    Args:
        path: the file, uncompressed.
        shuffle: a new random order in every pass.
        on_error: what happens with a record that cannot be read: "raise", "skip", "log", or an ``ErrorPolicy``.

    Raises:
        DataError: where there is no such file, or it is no TFRecord file or compressed.
    """

    def __init__(
        self, path: str | os.PathLike[str], shuffle: bool = False, *, on_error: OnError | ErrorPolicy = "raise"
    ) -> None:
        super().__init__(TFRecordReader(path), shuffle=shuffle, on_error=on_error)

    def datapoint(self, index: int) -> list[bytes]:
        """Return the value of a record."""
        return [self.reader.get(index)]


def decode_value(key: Any, value: bytes, *, allow_pickle: bool = False) -> Datapoint:
    """Return the datapoint in a record.

    Args:
        key: of the record, for errors; or a function that returns it, as reading it costs something.
        value: what ``ziggurat.records.codec.pack`` made, or a pickle.
        allow_pickle: whether a pickle is read.

    Returns:
        the datapoint, with arrays that may be written to.

    Raises:
        PickledDataError: for a pickle that is not allowed.
        DatapointError: where the value is neither, or damaged.
    """
    if value[:1] == _PICKLE:
        if not allow_pickle:
            raise PickledDataError(key)
        return _unpickled(key, value)
    try:
        return unpack(value, copy=True)
    except DecodingError as error:
        raise DatapointError(
            _text(key),
            f"it is no saved datapoint ({error.received}).",
            advice="Read other records as bytes, with `LMDBData` or `TFRecordData`.",
        ) from error


def _unpickled(key: Any, value: bytes) -> Datapoint:
    try:
        return pickle.loads(value)
    except Exception as error:  # what a damaged pickle raises is not limited
        raise DatapointError(_text(key), f"its pickle cannot be read ({type(error).__name__}: {error}).") from error


def _text(key: Any) -> Any:
    key = key() if callable(key) else key
    return key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key
