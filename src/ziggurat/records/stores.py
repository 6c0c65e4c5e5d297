"""Choice of record format: by name for writing, by the first bytes of the file for reading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ziggurat.errors import UnknownNameError
from ziggurat.records.base import RecordReader, RecordWriter
from ziggurat.records.hdf5_store import HDF5Reader, HDF5Writer
from ziggurat.records.lmdb_store import LMDBReader, LMDBWriter
from ziggurat.records.npz_store import NpzReader, NpzWriter
from ziggurat.records.tfrecord import TFRecordReader, TFRecordWriter

__all__ = ["RECORD_FORMATS", "create_records", "open_records"]

RECORD_FORMATS: Mapping[str, tuple[type[RecordWriter], type[RecordReader]]] = {
    "lmdb": (LMDBWriter, LMDBReader),
    "hdf5": (HDF5Writer, HDF5Reader),
    "tfrecord": (TFRecordWriter, TFRecordReader),
    "npz": (NpzWriter, NpzReader),
}
"""Writer and reader of each format."""


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
