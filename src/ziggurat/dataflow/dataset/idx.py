"""The idx format of MNIST: a magic number, the sizes of the dimensions, and the values, optionally gzip-compressed.

The magic number is two zero bytes, the code of the value type, and the number of dimensions; each size is a uint32.
All numbers are big-endian (http://yann.lecun.com/exdb/mnist describes it).
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from ziggurat.errors import DataError

__all__ = ["read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"


def read_idx(path: Path, *, dimensions: int) -> np.ndarray:
    """Return the array in a file, in the machine's byte order; the file may be compressed by gzip.

    Args:
        path: the file.
        dimensions: how many dimensions it must have.

    Raises:
        DataError: where it is cut off, damaged, or no such file.
    """
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(path, f"it cannot be read ({error})") from error
    if len(data) < 4 or data[:2] != b"\x00\x00" or data[2] not in _TYPES:
        raise _bad(path, f"it starts with {data[:4]!r}")
    if data[3] != dimensions:
        raise _bad(path, f"it has {data[3]} dimensions instead of {dimensions}")
    start = 4 + 4 * dimensions
    shape = [int.from_bytes(data[place : place + 4]) for place in range(4, start, 4)]
    dtype = np.dtype(_TYPES[data[2]])
    if len(data) != start + math.prod(shape) * dtype.itemsize:
        raise _bad(path, f"{len(data) - start} bytes for values of shape {tuple(shape)}")
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _bad(path: Path, received: str) -> DataError:
    return DataError(
        "An idx file has a header and as many values as it says.",
        received=f"`{path}`: {received}",
        advice="It is damaged, cut off, or another kind of file: get it anew.",
        details={"path": str(path)},
    )
