"""Encoded samples on disk: record stores with an index and checksums, and the codec for their values."""

from ziggurat.records.base import RecordIndexError, RecordReader, RecordWriter
from ziggurat.records.codec import DecodingError, EncodingError, pack, pack_parts, unpack
from ziggurat.records.lmdb_store import LMDBReader, LMDBWriter
from ziggurat.records.stores import (
    RECORD_FORMATS,
    HDF5Reader,
    HDF5Writer,
    NpzReader,
    NpzWriter,
    create_records,
    open_records,
)
from ziggurat.records.tfrecord import TFRecordReader, TFRecordWriter

__all__ = [
    "RECORD_FORMATS",
    "DecodingError",
    "EncodingError",
    "HDF5Reader",
    "HDF5Writer",
    "LMDBReader",
    "LMDBWriter",
    "NpzReader",
    "NpzWriter",
    "RecordIndexError",
    "RecordReader",
    "RecordWriter",
    "TFRecordReader",
    "TFRecordWriter",
    "create_records",
    "open_records",
    "pack",
    "pack_parts",
    "unpack",
]
