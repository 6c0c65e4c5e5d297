"""Arrays in idx files: memory-mapped if uncompressed, loaded into memory if compressed."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.dataflow.dataset.mnist import read_idx
from ziggurat.errors import DataError

__all__ = ["IndexedHeader", "open_values", "read_header_of"]

_TYPES: Final = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_BYTES: Final = 1 << 30
_HEADER_BYTES: Final = 4 + 4 * 255


@dataclass(frozen=True)
class IndexedHeader:
    """What the first bytes of a file say.

    Args:
        shape: of the array.
        dtype: of its values, big-endian.
        compressed: whether the file is in gzip.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    compressed: bool

    @property
    def start_bytes(self) -> int:
        """Where the values begin."""
        return 4 + 4 * len(self.shape)

    @property
    def size_bytes(self) -> int:
        """Size of the whole file, decompressed."""
        return self.start_bytes + math.prod(self.shape) * self.dtype.itemsize


def read_header_of(path: Path) -> IndexedHeader:
    """Return the header of a file.

    Raises:
        DataError: where the file is no idx file, cut off, or compressed and larger than 1 GiB.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as file:
            start = file.read(_HEADER_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(path, f"it cannot be read ({error})") from error
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or len(start) < 4 + 4 * start[3]:
        raise _bad(path, f"it starts with {start[:4]!r}")
    shape = tuple(int.from_bytes(start[place : place + 4]) for place in range(4, 4 + 4 * start[3], 4))
    header = IndexedHeader(shape, np.dtype(_TYPES[start[2]]), compressed)
    _check_size(path, header)
    return header


def open_values(path: Path) -> np.ndarray:
    """Return the array in a file; a plain file is mapped, so that only what is used of it is read.

    Raises:
        DataError: as ``read_header_of``.
    """
    header = read_header_of(path)
    if header.compressed or not math.prod(header.shape):
        return read_idx(path, dimensions=len(header.shape))
    return np.memmap(path, header.dtype, "r", offset=header.start_bytes, shape=header.shape)


def _check_size(path: Path, header: IndexedHeader) -> None:
    if not header.compressed:
        found = path.stat().st_size
        if found != header.size_bytes:
            raise _bad(path, f"{found} bytes where its header says {header.size_bytes}")
        return
    if header.size_bytes > _MOST_BYTES:
        raise DataError(
            "A compressed idx file of at most 1 GiB is read, because it is held in memory.",
            received=f"`{path}` with {header.size_bytes} bytes",
            advice="Decompress it with gunzip; then only what is used of it is read.",
        )
    with path.open("rb") as file:  # gzip ends with the size, so a file that was cut off or goes on is seen at once
        file.seek(-4, 2)
        found = int.from_bytes(file.read(4), "little")
    if found != header.size_bytes:
        raise _bad(path, f"{found} bytes where its header says {header.size_bytes}")


def _bad(path: Path, received: str) -> DataError:
    return DataError(
        "An idx file has a header and as many values as it says.",
        received=f"`{path}`: {received}",
        advice="It is damaged, cut off, or another kind of file: get it anew.",
        details={"path": str(path)},
    )
