"""Base of flows over record stores: the reader opens on demand and closes with the flow."""

from __future__ import annotations

import os
from typing import Any

from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.records.base import RecordReader

__all__ = ["RecordsFlow"]


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
