"""Record stores in NumPy's ``.npz``: uncompressed, so that a record is read by its offset in the file.

Any program with NumPy can open it (see ``ziggurat.records.sharded`` for the arrays); there is no pickle inside.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from ziggurat.records.base import not_a_store
from ziggurat.records.files import DataFile
from ziggurat.records.sharded import INDEX_NAME, ShardedReader, ShardedWriter, shard_name

__all__ = ["NpzReader", "NpzWriter"]

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
