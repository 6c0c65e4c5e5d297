"""Record-store base classes: a writer that completes fully or not at all, and a reader by number.

A store is a sequence of records, each with a key and a value. The value is bytes that are already encoded (a JPEG
file, or a datapoint packed by ``ziggurat.records.codec.pack``).

Index of a store: offset, length, checksum and key of each record, at 32 bytes per record.

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

import os
import struct
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import google_crc32c

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.errors import DataError, DatapointError, UsageError

__all__ = ["DataFile", "Index", "RecordIndexError", "RecordReader", "RecordWriter", "default_key", "not_a_store"]


_Read = Callable[[int, int], Any]


class RecordIndexError(DataError, IndexError):
    """There is no record of that number."""

    code = "record_index"


class RecordWriter(ABC):
    """Writes a new store; use it in a ``with`` statement.

    The store gets its name when the block ends; where the block ends with an error, nothing stays behind. A process
    that is killed leaves a file ``.NAME.*.partial``, never one called NAME.

    Args:
        path: file to make. It must not exist, its folder must.

    Raises:
        StorageError: where something stands at ``path``, or the disk is full or refuses (also from every method).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._target = AtomicFile(self.path)
        self._index = IndexBuilder()
        self._open = True
        try:
            with storage_errors(self.path):
                self._begin()
        except BaseException:
            self._target.discard()
            raise

    def append(self, key: str | None, value: bytes | bytearray | memoryview) -> int:
        """Add a record and return its number, from 0.

        Args:
            key: name of the record, such as the file that it came from; None: its number, as ``00000042``. It should
                be unique, but that is not checked.
            value: the content. A ``memoryview`` or ``bytearray`` is copied.
        """
        if not self._open:
            raise UsageError("A store that is finished takes no more records.", received=f"a record for `{self.path}`")
        if not isinstance(value, bytes | bytearray | memoryview):
            raise UsageError(
                f"The value of record {len(self)} is a {type(value).__name__}, not bytes.",
                advice="Encode it first, for example with `ziggurat.records.codec.pack`.",
            )
        content = bytes(value)
        with storage_errors(self.path):
            self._put(key, content)
        return len(self) - 1

    def __len__(self) -> int:
        return len(self._index)

    def finish(self) -> None:
        """Bring everything to the disk and give the store its name; called at the end of a ``with`` block."""
        if not self._open:
            return
        self._open = False
        try:
            with storage_errors(self.path):
                self._end()
            self._target.publish()
        except BaseException:
            self._target.discard()
            raise

    def discard(self) -> None:
        """Give up and delete what was written; called where a ``with`` block ends with an error."""
        if self._open:
            self._open = False
            try:
                self._abandon()
            finally:
                self._target.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    @abstractmethod
    def _begin(self) -> None:
        """Open ``self._target.path``."""

    @abstractmethod
    def _put(self, key: str | None, value: bytes) -> None:
        """Write a record and add it to ``self._index``."""

    @abstractmethod
    def _end(self) -> None:
        """Write what is missing and close ``self._target.path``, even where that fails."""

    @abstractmethod
    def _abandon(self) -> None:
        """Close ``self._target.path``; raise nothing."""


class RecordReader(ABC):
    """Reads a store by number: any record at any time, in memory that does not grow with the store.

    It may be used by several threads, be sent to another process (which opens the store by itself) and be used on both
    sides of a fork.

    Args:
        path: the store.

    Raises:
        DataError: where there is no store, or it is damaged or cut off.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise DataError(f"There is no store at `{self.path}`.")
        self._reopen()

    def get(self, number: int) -> bytes:
        """Return the value of a record.

        Raises:
            RecordIndexError: where ``number`` is not from 0 to ``len(self) - 1``.
            DatapointError: where its checksum is wrong.
        """
        return self._value(self._checked(number))

    def get_many(self, numbers: Iterable[int]) -> list[bytes]:
        """Return the values of several records, in the order of ``numbers``."""
        return [self._value(self._checked(number)) for number in numbers]

    def key(self, number: int) -> str:
        """Return the key of a record."""
        return self._key(self._checked(number))

    def item(self, number: int) -> tuple[str, bytes]:
        """Return key and value of a record."""
        return self.key(number), self.get(number)

    @property
    def keys(self) -> Sequence[str]:
        """The keys in order; each is read from the store when it is asked for."""
        return _Keys(self)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield key and value of each record in order."""
        for number in range(len(self)):
            yield self._key(number), self._value(number)

    def verify(self) -> None:
        """Read every record.

        Raises:
            DatapointError: naming the first whose checksum is wrong.
        """
        for number in range(len(self)):
            self._value(number)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    @abstractmethod
    def close(self) -> None:
        """Free files and memory at once."""

    def reopen(self) -> None:
        """Open a closed store again."""
        self._reopen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reopen()

    @abstractmethod
    def _reopen(self) -> None:
        """Open ``self.path``."""

    @abstractmethod
    def _value(self, number: int) -> bytes: ...

    @abstractmethod
    def _key(self, number: int) -> str: ...

    def _checked(self, number: int) -> int:
        if not 0 <= number < len(self):
            raise RecordIndexError(
                f"There is no record {number} among the {len(self)} of `{self.path}`, which are numbered from 0."
            )
        return int(number)

    def _intact(self, number: int, value: bytes, crc32c: int) -> bytes:
        if google_crc32c.value(value) != crc32c:
            raise DatapointError(self._key(number), f"its checksum in `{self.path}` is wrong; the store is damaged.")
        return value


def not_a_store(path: Path, kind: str, reason: object) -> DataError:
    """Return the error for a file that is no store of a kind, or no whole one."""
    return DataError(
        f"A store of kind {kind} is read as it was written.",
        received=f"`{path}`: {reason}",
        advice="It is damaged, cut off, or of another kind: write it again.",
        details={"path": str(path)},
    )


class _Keys(Sequence[str]):
    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self._reader.key(one) for one in range(*number.indices(len(self)))]
        return self._reader.key(number + len(self) if number < 0 else number)


class DataFile:
    """A file open for reading at given places.

    The position is part of each read, so that threads and forked processes share it without a lock.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size_bytes = os.fstat(handle).st_size
        self._handle = handle
        self._close = weakref.finalize(self, os.close, handle)
        self._close.atexit = False

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset`` on; fewer where the file ends before."""
        data = os.pread(self._handle, size, offset)
        while len(data) < size:  # the system gives at most 2 GiB at a time
            more = os.pread(self._handle, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        """Close the file."""
        self._close()

    def __reduce__(self) -> Any:
        raise TypeError("an open file does not cross process borders; its store opens it anew")


_MAGIC = b"ZGI1"


_HEADER = struct.Struct("<4sIQQQ")


_ROW = struct.Struct("<QQQII")


_NO_KEY = 0xFFFFFFFF


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
