"""Stores that consist of a few large byte arrays and an index: the common part of the npz and HDF5 formats.

The arrays (*shards*) are ``values_00000``, ``values_00001``, …: records one after the other, up to 32 MiB per shard
unless one record is larger. The array ``index`` is the block of ``ziggurat.records.index``; its offsets count through
all shards.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from itertools import accumulate

from ziggurat.records.base import RecordReader, RecordWriter
from ziggurat.records.index import Index

__all__ = ["INDEX_NAME", "ShardedReader", "ShardedWriter", "shard_name"]

INDEX_NAME = "index"
_SHARD_BYTES = 32 << 20


def shard_name(number: int) -> str:
    """Return the name of a shard."""
    return f"values_{number:05d}"


class ShardedWriter(RecordWriter):
    """Writes shards; it holds the records of one shard in memory."""

    def _begin(self) -> None:
        self._shard: list[bytes] = []
        self._shard_bytes = 0
        self._shards = 0
        self._position = 0
        self._create()

    def _put(self, key: str | None, value: bytes) -> None:
        if self._shard and self._shard_bytes + len(value) > _SHARD_BYTES:
            self._flush()
        self._shard.append(value)
        self._shard_bytes += len(value)
        self._index.add(key, value, self._position)
        self._position += len(value)

    def _flush(self) -> None:
        self._write_array(shard_name(self._shards), self._shard)
        self._shards += 1
        self._shard, self._shard_bytes = [], 0

    def _end(self) -> None:
        try:
            self._flush()
            self._write_array(INDEX_NAME, [self._index.to_bytes()])
            self._complete()
        finally:
            self._abandon()

    @abstractmethod
    def _create(self) -> None:
        """Open ``self._target.path``."""

    @abstractmethod
    def _write_array(self, name: str, pieces: list[bytes]) -> None:
        """Write ``pieces``, one after the other, as an array of uint8."""

    @abstractmethod
    def _complete(self) -> None:
        """Write what the format puts at the end of the file."""


class ShardedReader(RecordReader):
    """Reads the part of a shard that a record is."""

    def _reopen(self) -> None:
        lengths = self._open_arrays()
        self._starts = [0, *accumulate(lengths)]
        self._index = Index(lambda offset, size: self._read(None, offset, size), self._index_bytes(), str(self.path))

    def __len__(self) -> int:
        return len(self._index)

    def _value(self, number: int) -> bytes:
        entry = self._index.entry(number)
        value = b""
        if entry.length and entry.offset < self._starts[-1]:
            shard = bisect_right(self._starts, entry.offset) - 1
            value = self._read(shard, entry.offset - self._starts[shard], entry.length)
        return self._intact(number, value, entry.crc32c)

    def _key(self, number: int) -> str:
        return self._index.key(number)

    @abstractmethod
    def _open_arrays(self) -> list[int]:
        """Open the file and return the length of each shard in bytes."""

    @abstractmethod
    def _index_bytes(self) -> int:
        """Return the length of the index in bytes."""

    @abstractmethod
    def _read(self, shard: int | None, offset: int, size: int) -> bytes:
        """Return a part of a shard, or of the index where ``shard`` is None."""
