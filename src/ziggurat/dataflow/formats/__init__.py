"""Readers and writers of flows as record files: LMDB, HDF5, TFRecord and npz."""

from ziggurat.dataflow.formats.hdf5 import HDF5Data, HDF5Serializer
from ziggurat.dataflow.formats.records import LMDBData, LMDBDataDecoder, LMDBDataPoint, TFRecordData
from ziggurat.dataflow.formats.serializers import LMDBSerializer, NumpySerializer, TFRecordSerializer

__all__ = [
    "HDF5Data",
    "HDF5Serializer",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "LMDBSerializer",
    "NumpySerializer",
    "TFRecordData",
    "TFRecordSerializer",
]
