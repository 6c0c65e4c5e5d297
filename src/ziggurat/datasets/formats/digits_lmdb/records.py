"""Records of the LMDB stores of DIGITS and Caffe: iteration, and decoding of a ``Datum``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.datasets.wire_format import Datum, WireFormatError, unpack_datum
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.lmdb_environment import EnvironmentLease

__all__ = [
    "array_of",
    "datum_of",
    "first_record",
    "is_store",
    "open_store",
    "picture_of",
    "records_of",
    "shape_of",
]

_BLOCK_BYTES = 16 << 20
_BLOCK_RECORDS = 1000


def is_store(path: Path) -> bool:
    """Whether there is an LMDB store in a folder."""
    return (path / "data.mdb").is_file()


def records_of(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record, in the order of the keys, a few MiB at a time.

    Raises:
        DataError: where it is no LMDB store.
    """
    lease = open_store(path)
    try:
        after = None
        while block := _block(lease, after):
            yield from block
            after = block[-1][0]
    finally:
        lease.close()


def first_record(path: Path) -> Datum | None:
    """Return the first record of a store; None where it has none, or another kind of records."""
    try:
        first = next(records_of(path), None)
        return None if first is None else unpack_datum(first[1])
    except DataError:
        return None


def datum_of(lease: EnvironmentLease, key: bytes, address: str) -> Datum:
    """Return the record of a key.

    Raises:
        DatapointError: where there is none, or it is no ``Datum``.
    """
    with lease.transaction() as transaction:
        value = transaction.get(key)
        content = None if value is None else bytes(value)
    if content is None:
        raise DatapointError(address, "its store has no record of that key.")
    try:
        return unpack_datum(content)
    except WireFormatError as error:
        raise DatapointError(address, f"its record is no Datum ({error}).") from error


def shape_of(datum: Datum) -> tuple[int, int, int]:
    """Return height, width and channels of a record; of an encoded image, from its header.

    Raises:
        DataError: where it has none.
    """
    if not datum.encoded:
        channels, height, width = datum.array().shape
        return height, width, channels
    try:
        with Image.open(io.BytesIO(datum.data)) as image:
            return image.height, image.width, len(image.getbands())
    except (OSError, ValueError) as error:
        raise DataError("An encoded Datum holds an image.", received=str(error)) from error


def picture_of(datum: Datum, address: str) -> bytes | np.ndarray:
    """Return an image: the bytes of a file, or (H, W, C) uint8, RGB (Caffe stores BGR).

    Raises:
        DatapointError: where it has floats, or too many or too few values.
    """
    if datum.encoded:
        return datum.data
    if not datum.data:
        raise DatapointError(address, "it has floats, and an image has bytes.")
    return _array(datum, address)


def array_of(datum: Datum, address: str) -> np.ndarray:
    """Return what a record holds as (H, W, C): uint8 of bytes, 3 channels as RGB, or float32.

    Raises:
        DatapointError: where it cannot be decoded, or has too many or too few values.
    """
    if not datum.encoded:
        return _array(datum, address)
    channels = 1 if shape_of(datum)[2] == 1 else 3
    return decode_image(datum.data, channels=channels, key=address)


def _array(datum: Datum, address: str) -> np.ndarray:
    try:
        values = datum.array()
    except WireFormatError as error:
        raise DatapointError(address, str(error)) from error
    if values.dtype == np.uint8 and values.shape[0] == 3:
        values = values[::-1]
    return np.ascontiguousarray(values.transpose(1, 2, 0))


def open_store(path: Path) -> EnvironmentLease:
    """Return the open store in a folder.

    Raises:
        DataError: where there is none.
    """
    try:
        return EnvironmentLease(path)
    except OSError as error:
        raise DataError(
            "A store of DIGITS is a folder with the file `data.mdb`.",
            received=f"`{path}`: {error.strerror}",
            advice="Name the folder that holds `data.mdb`.",
        ) from error


def _block(lease: EnvironmentLease, after: bytes | None) -> list[tuple[bytes, bytes]]:
    """Return the next records behind a key."""
    block: list[tuple[bytes, bytes]] = []
    size_bytes = 0
    with lease.transaction() as transaction:
        cursor = transaction.cursor()
        found = cursor.first() if after is None else cursor.set_range(after)
        if found and bytes(cursor.key()) == after:
            found = cursor.next()
        while found and size_bytes < _BLOCK_BYTES and len(block) < _BLOCK_RECORDS:
            block.append((bytes(cursor.key()), bytes(cursor.value())))
            size_bytes += len(block[-1][1])
            found = cursor.next()
    return block
