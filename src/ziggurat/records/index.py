"""Index of a store: offset, length, checksum and key of each record, at 32 bytes per record.

An index is one block of bytes::

    header   magic b"ZGI1", CRC-32C of the next 24 bytes (uint32), number of records, length of the keys,
             length of the data file that it belongs to (0: none) (uint64 each)
    rows     offset, length, offset of the key (uint64 each),
             length of the key (2**32-1: no key), CRC-32C (uint32 each)
    keys     UTF-8, one after the other

All numbers are little-endian. A reader reads one row at a time, so that an open store costs the same memory at any
size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import google_crc32c

from ziggurat.errors import DataError

__all__ = ["Index", "IndexBuilder", "IndexEntry", "default_key"]

_MAGIC = b"ZGI1"
_HEADER = struct.Struct("<4sIQQQ")
_ROW = struct.Struct("<QQQII")
_NO_KEY = 0xFFFFFFFF
_Read = Callable[[int, int], Any]


def default_key(number: int) -> str:
    """Return the key of a record that was given none: its number, in eight digits or more."""
    return f"{number:08d}"


class IndexEntry(NamedTuple):
    """One row: a tuple, because one is made for every record that is read.

    Args:
        offset: where the record starts in the data file, in bytes.
        length: its length in bytes.
        key_offset: where its key starts among the keys, in bytes.
        key_length: length of the key in bytes; 2**32-1 where it has none.
        crc32c: checksum of its content.
    """

    offset: int
    length: int
    key_offset: int
    key_length: int
    crc32c: int


class IndexBuilder:
    """Collects the rows while a store is written (32 bytes a record, and the keys)."""

    def __init__(self) -> None:
        self._rows = bytearray()
        self._keys = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def add(self, key: str | None, value: bytes, offset: int = 0) -> None:
        """Add the row of the next record."""
        name = b"" if key is None else key.encode("utf-8", "surrogateescape")
        length = _NO_KEY if key is None else len(name)
        self._rows += _ROW.pack(offset, len(value), len(self._keys), length, google_crc32c.value(value))
        self._keys += name

    def to_bytes(self, data_bytes: int = 0) -> bytes:
        """Return the block; ``data_bytes`` is the length of the data file that it belongs to."""
        counts = struct.pack("<QQQ", len(self), len(self._keys), data_bytes)
        return struct.pack("<4sI", _MAGIC, google_crc32c.value(counts)) + counts + self._rows + self._keys


class Index:
    """Reads an index row by row.

    Args:
        read: gives some bytes of the block: a function of offset and number.
        size_bytes: length of the block.
        name: what to call it in errors.

    Raises:
        DataError: where the block is damaged or cut off.
    """

    def __init__(self, read: _Read, size_bytes: int, name: str) -> None:
        self._read = read
        header = read(0, _HEADER.size) if size_bytes >= _HEADER.size else b""
        if len(header) < _HEADER.size or header[:4] != _MAGIC:
            raise _damaged(name, f"{size_bytes} bytes that start with {header[:8]!r}")
        _magic, checksum, self._count, keys_bytes, self.data_bytes = _HEADER.unpack(header)
        self._keys_start = _HEADER.size + self._count * _ROW.size
        if google_crc32c.value(header[8:]) != checksum or self._keys_start + keys_bytes != size_bytes:
            raise _damaged(name, f"{size_bytes} bytes for {self._count} records")

    def __len__(self) -> int:
        return self._count

    def entry(self, number: int, read: _Read | None = None) -> IndexEntry:
        """Return the row of a record.

        Args:
            number: from 0 to ``len(self) - 1``.
            read: used instead of the index's own, by a store that has the block at hand already.
        """
        return IndexEntry._make(_ROW.unpack((read or self._read)(_HEADER.size + number * _ROW.size, _ROW.size)))

    def key(self, number: int, read: _Read | None = None) -> str:
        """Return the key of a record."""
        _offset, _length, key_offset, key_length, _crc32c = self.entry(number, read)
        if key_length == _NO_KEY:
            return default_key(number)
        return str((read or self._read)(self._keys_start + key_offset, key_length), "utf-8", "surrogateescape")


def _damaged(name: str, received: str) -> DataError:
    return DataError(
        f"The index of `{name}` is read as it was written.",
        received=received,
        advice="The store is damaged or cut off: write it again.",
    )
