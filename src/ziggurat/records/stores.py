"""Record stores by name for writing and by their first bytes for reading, with the sharded ones: HDF5 and npz.

Datasets are stored as LMDB or TFRecord files. Those of release 0.1 may be HDF5: a training converts such a store once,
into an LMDB file beside it that holds the same records, and reads that from then on.
"""

from __future__ import annotations

import fcntl
import io
import os
import zipfile
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.errors import UnknownNameError
from ziggurat.records.base import DataFile, Index, RecordReader, RecordWriter, not_a_store
from ziggurat.records.hdf5_file import HDF5File, NewHDF5File
from ziggurat.records.lmdb_store import LMDBReader, LMDBWriter
from ziggurat.records.tfrecord import TFRecordReader, TFRecordWriter

__all__ = [
    "OLD_FORMATS",
    "RECORD_FORMATS",
    "HDF5Reader",
    "HDF5Writer",
    "NpzReader",
    "NpzWriter",
    "convert_old_store",
    "create_records",
    "open_records",
    "present_store",
]


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


_KIND = "npz"


_LOCAL_HEADER_BYTES = 30


class NpzWriter(ShardedWriter):
    """Writes an ``.npz`` store."""

    def _create(self) -> None:
        self._file = open(self._target.path, "xb")  # noqa: SIM115
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)

    def _write_array(self, name: str, pieces: list[bytes]) -> None:
        member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))  # equal records make equal files
        with self._zip.open(member, "w", force_zip64=True) as file:
            shape = (sum(map(len, pieces)),)
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for piece in pieces:
                file.write(piece)

    def _complete(self) -> None:
        self._zip.close()

    def _abandon(self) -> None:
        self._zip.fp = None  # it would otherwise write its directory into a file that is given up
        try:
            self._file.close()
        except OSError:
            pass


class NpzReader(ShardedReader):
    """Reads an ``.npz`` store at random."""

    def _open_arrays(self) -> list[int]:
        self._file = DataFile(self.path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._index_place = self._content(archive.getinfo(f"{INDEX_NAME}.npy"))
                names = set(archive.namelist())
                shards = [name for name in map(_member_name, range(len(names))) if name in names]
                self._places = [self._content(archive.getinfo(name)) for name in shards]
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            self._file.close()
            raise not_a_store(self.path, _KIND, error) from error
        return [size for _start, size in self._places]

    def _content(self, member: zipfile.ZipInfo) -> tuple[int, int]:
        """Return where the array of a stored member starts in the file, and its length in bytes."""
        if member.compress_type != zipfile.ZIP_STORED:
            raise zipfile.BadZipFile("compressed, which leaves no random access")
        local = self._file.read(member.header_offset, _LOCAL_HEADER_BYTES)
        name_bytes, extra_bytes = int.from_bytes(local[26:28], "little"), int.from_bytes(local[28:30], "little")
        start = member.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
        head = io.BytesIO(self._file.read(start, min(member.file_size, 4096)))
        np.lib.format.read_magic(head)
        np.lib.format.read_array_header_1_0(head)
        return start + head.tell(), member.file_size - head.tell()

    def _index_bytes(self) -> int:
        return self._index_place[1]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, shard: int | None, offset: int, size: int) -> bytes:
        start: Any = (self._index_place if shard is None else self._places[shard])[0]
        return self._file.read(start + offset, size)


def _member_name(number: int) -> str:
    return f"{shard_name(number)}.npy"


_FORMAT = "ziggurat-records-1"


class HDF5Writer(ShardedWriter):
    """Writes an HDF5 store."""

    def _create(self) -> None:
        self._file = NewHDF5File(self._target.path)
        self._file.root.attrs["format"] = _FORMAT

    def _write_array(self, name: str, pieces: list[bytes]) -> None:
        self._file.root[name] = np.frombuffer(b"".join(pieces), np.uint8)
        self._file.check()

    def _complete(self) -> None:
        self._file.close()

    def _abandon(self) -> None:
        self._file.abandon()


class HDF5Reader(ShardedReader):
    """Reads an HDF5 store at random."""

    def _open_arrays(self) -> list[int]:
        self._file = HDF5File(self.path)
        root = self._file.root
        if root.attrs.get("format") != _FORMAT or INDEX_NAME not in root:
            self._file.close()
            raise not_a_store(self.path, "HDF5", "no store of records; HDF5Data reads other HDF5 files")
        shards = [name for name in map(shard_name, range(len(root))) if name in root]
        return [root[name].shape[0] for name in shards]

    def _index_bytes(self) -> int:
        return self._file[INDEX_NAME].shape[0]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, shard: int | None, offset: int, size: int) -> bytes:
        name = INDEX_NAME if shard is None else shard_name(shard)
        return self._file[name][offset : offset + size].tobytes()


RECORD_FORMATS: Mapping[str, tuple[type[RecordWriter], type[RecordReader]]] = {
    "lmdb": (LMDBWriter, LMDBReader),
    "hdf5": (HDF5Writer, HDF5Reader),
    "tfrecord": (TFRecordWriter, TFRecordReader),
    "npz": (NpzWriter, NpzReader),
}
"""Writer and reader of each format."""

OLD_FORMATS: Final = ("hdf5", "npz")
"""Formats that no new dataset is stored in."""


def create_records(path: str | os.PathLike[str], record_format: str = "lmdb") -> RecordWriter:
    """Return the writer of a new store.

    Args:
        path: file to make.
        record_format: a name in ``RECORD_FORMATS``.

    Raises:
        UnknownNameError: where there is no such format.
        StorageError: where something stands at ``path``, or it cannot be written.
    """
    if record_format not in RECORD_FORMATS:
        raise UnknownNameError("record format", record_format, RECORD_FORMATS)
    return RECORD_FORMATS[record_format][0](path)


def open_records(path: str | os.PathLike[str]) -> RecordReader:
    """Return a reader of a store, whose format its first bytes tell.

    Raises:
        DataError: where there is none, or it is damaged.
    """
    return RECORD_FORMATS[_format_of(Path(path))][1](path)


def present_store(path: Path) -> Path:
    """Return the file that holds the records of a store now: what it was converted into, else itself."""
    converted = _converted_path(path)
    return converted if converted.exists() else path


def convert_old_store(path: Path) -> Path:
    """Write the records of a store into an LMDB file beside it, whole or not at all; return that file.

    Several processes may ask at once: one converts, and the others wait for it. The old store stays as it is.

    Raises:
        StorageError: where the folder cannot be written to.
        DataError: where the store or a record is damaged.
    """
    target = _converted_path(path)
    with _locked(path.parent):
        if not target.exists():
            for leftover in path.parent.glob(f".{target.name}.*.partial"):  # of a process that was killed
                leftover.unlink()
            with open_records(path) as reader, LMDBWriter(target) as writer:
                for number in range(len(reader)):
                    writer.append(*reader.item(number))
    return target


def _converted_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lmdb")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other process holds a folder, which needs no right to write and ends with the process."""
    with storage_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _format_of(path: Path) -> str:
    if path.is_dir():
        return "lmdb"
    head = b""
    if path.exists():
        with path.open("rb") as file:
            head = file.read(32)
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "lmdb"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    return "npz" if head.startswith(b"PK") else "tfrecord"
