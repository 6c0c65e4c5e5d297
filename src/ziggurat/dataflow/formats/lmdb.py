"""Flows that read LMDB stores, under the names that Tensorpack uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.formats.decoding import decode_value
from ziggurat.dataflow.formats.records_flow import RecordsFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.stages.mapping import MapData
from ziggurat.records.lmdb_store import LMDBReader

__all__ = ["LMDBData", "LMDBDataDecoder", "LMDBDataPoint"]


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
