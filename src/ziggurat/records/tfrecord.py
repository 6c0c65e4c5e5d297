"""TFRecord files: TensorFlow's framing, with a side file for random access and keys.

A record is framed as its length (uint64, little-endian), the masked CRC-32C of these 8 bytes, the content, and the
masked CRC-32C of the content. The mask is ``rotate_right(crc, 15) + 0xa282ead8`` modulo 2**32. TensorFlow reads the
files written here, and its files are readable here. The side file is ``NAME.index`` (see ``ziggurat.records.base``);
a file without one is scanned once when it is opened.
"""

from __future__ import annotations

import os
import struct
from array import array
from pathlib import Path
from typing import Any

import google_crc32c

from ziggurat.atomic import AtomicFile
from ziggurat.errors import DatapointError
from ziggurat.records.base import DataFile, Index, RecordReader, RecordWriter, default_key, not_a_store

__all__ = ["TFRecordReader", "TFRecordWriter", "index_path"]

_LENGTH = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_KIND = "TFRecord"


def index_path(path: str | os.PathLike[str]) -> Path:
    """Return the name of the side file of a TFRecord file."""
    return Path(f"{os.fspath(path)}.index")


class TFRecordWriter(RecordWriter):
    """Writes a TFRecord file and its side file, which is there before the file itself gets its name."""

    def _begin(self) -> None:
        self._file = open(self._target.path, "xb", buffering=1 << 20)  # noqa: SIM115
        self._position = 0

    def _put(self, key: str | None, value: bytes) -> None:
        length = struct.pack("<Q", len(value))
        self._file.write(length + _CHECKSUM.pack(_masked(length)))
        self._file.write(value)
        self._file.write(_CHECKSUM.pack(_masked(value)))
        self._index.add(key, value, self._position)
        self._position += _LENGTH.size + len(value) + _CHECKSUM.size

    def _end(self) -> None:
        self._file.close()
        side = AtomicFile(index_path(self.path), replace=True)
        try:
            side.path.write_bytes(self._index.to_bytes(self._position))
            side.publish()
        except BaseException:
            side.discard()
            raise

    def _abandon(self) -> None:
        try:
            self._file.close()
        except OSError:  # the disk is full: closing writes the rest of the buffer
            pass


class TFRecordReader(RecordReader):
    """Reads a TFRecord file at random.

    Raises:
        DataError: where the file is damaged, cut off or compressed, or its side file belongs to another one.
    """

    def _reopen(self) -> None:
        self._file = DataFile(self.path)
        self._side: DataFile | None = None
        self._index: Index | None = None
        self._offsets = array("Q")
        side = index_path(self.path)
        if side.exists():
            self._side = DataFile(side)
            self._index = Index(self._side.read, self._side.size_bytes, str(self.path))
            if self._index.data_bytes != self._file.size_bytes:
                reason = f"{self._file.size_bytes} bytes; its index `{side}` is for {self._index.data_bytes}"
                raise not_a_store(self.path, _KIND, reason)
        else:
            self._scan()

    def __len__(self) -> int:
        return len(self._offsets) if self._index is None else len(self._index)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._side is not None:
            self._side.close()

    def _value(self, number: int) -> bytes:
        offset = self._offsets[number] if self._index is None else self._index.entry(number).offset
        length = self._length(offset)
        data = self._file.read(offset + _LENGTH.size, length + _CHECKSUM.size)
        value = data[:length]
        if len(data) < length + _CHECKSUM.size or _CHECKSUM.unpack(data[length:])[0] != _masked(value):
            raise DatapointError(self._key(number), f"its checksum in `{self.path}` is wrong; the store is damaged.")
        return value

    def _key(self, number: int) -> str:
        return default_key(number) if self._index is None else self._index.key(number)

    def _scan(self) -> None:
        offset = 0
        while offset < self._file.size_bytes:
            self._offsets.append(offset)
            offset += _LENGTH.size + self._length(offset) + _CHECKSUM.size
        if offset > self._file.size_bytes:
            raise not_a_store(self.path, _KIND, f"cut off in record {len(self._offsets) - 1}")

    def _length(self, offset: int) -> int:
        head = self._file.read(offset, _LENGTH.size)
        if len(head) < _LENGTH.size:
            raise not_a_store(self.path, _KIND, f"cut off at byte {offset}")
        length, checksum = _LENGTH.unpack(head)
        if checksum != _masked(head[:8]):
            raise not_a_store(self.path, _KIND, _why_no_frame(head, offset))
        return length


def _masked(data: bytes) -> int:
    checksum: Any = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _why_no_frame(head: bytes, offset: int) -> str:
    if offset == 0 and head[:2] in (b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda"):
        return "a compressed file, which has no random access; decompress it first"
    return f"no record at byte {offset}"
