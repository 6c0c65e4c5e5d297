"""Public names of the data library, each imported on first use.

A data flow yields datapoints. Stages wrap one another, and the last one is iterated::

    from ziggurat.dataflow import BatchData, ImageFolder, MultiProcessMapData

    ds = ImageFolder("flowers/train", shuffle=True)
    ds = MultiProcessMapData(ds, 4, augment)
    ds = BatchData(ds, 64).seed(7)
    for images, labels in ds:
        ...

Importing this module imports nothing else: no framework, no OpenCV.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ziggurat.errors import MissingDependencyError, nearest_names

if TYPE_CHECKING:
    from ziggurat.dataflow import dataset, imgaug
    from ziggurat.dataflow.adapters import (
        dataflow_to_dataset,
        from_huggingface,
        from_tf_dataset,
        from_torch,
        to_huggingface,
        to_tf_dataset,
        to_torch,
    )
    from ziggurat.dataflow.augment import (
        AugmentImageComponent,
        AugmentImageComponents,
        AugmentImageCoordinates,
        augment_component,
        augment_components,
    )
    from ziggurat.dataflow.base import (
        DataFlow,
        Datapoint,
        ProxyDataFlow,
        RNGDataFlow,
        StageErrors,
        StageStats,
        UnknownLengthError,
    )
    from ziggurat.dataflow.fast import JpegCropBatches
    from ziggurat.dataflow.formats import (
        HDF5Data,
        HDF5Serializer,
        LMDBData,
        LMDBDataDecoder,
        LMDBDataPoint,
        LMDBSerializer,
        NumpySerializer,
        TFRecordData,
        TFRecordSerializer,
    )
    from ziggurat.dataflow.images import ImageFolder, ImageFromFile, ImageList, decode_image, encode_image, read_image
    from ziggurat.dataflow.imgaug.mixing import CutMix, MixUp
    from ziggurat.dataflow.indexed import IndexedFlow
    from ziggurat.dataflow.parallel import (
        MultiProcessMapAndBatchData,
        MultiProcessMapAndBatchDataZMQ,
        MultiProcessMapData,
        MultiProcessMapDataZMQ,
        MultiProcessPrefetchData,
        MultiProcessRunner,
        MultiProcessRunnerZMQ,
        MultiThreadMapData,
        MultiThreadPrefetchData,
        MultiThreadRunner,
        PrefetchData,
        PrefetchDataZMQ,
    )
    from ziggurat.dataflow.policy import ErrorCounts, ErrorPolicy
    from ziggurat.dataflow.random import RandomStream, fix_rng_seed
    from ziggurat.dataflow.record_data import RecordData
    from ziggurat.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq
    from ziggurat.dataflow.sources import (
        DataFromArrays,
        DataFromGenerator,
        DataFromIterable,
        DataFromList,
        DataFromQueue,
        FakeData,
    )
    from ziggurat.dataflow.speed import DataSpeed, PrintData, TestDataSpeed
    from ziggurat.dataflow.stages.batching import BatchData, BatchDataByShape, stack_datapoints
    from ziggurat.dataflow.stages.buffering import CacheData, LocallyShuffleData
    from ziggurat.dataflow.stages.joining import ConcatData, JoinData, RandomChooseData, RandomMixData
    from ziggurat.dataflow.stages.mapping import MapData, MapDataComponent, ProcessOnce, SelectComponent
    from ziggurat.dataflow.stages.repeating import FixedSizeData, RepeatedData, RepeatedDataPoint

__all__ = [
    "AugmentImageComponent",
    "AugmentImageComponents",
    "AugmentImageCoordinates",
    "BatchData",
    "BatchDataByShape",
    "CacheData",
    "ConcatData",
    "CutMix",
    "DataFlow",
    "DataFromArrays",
    "DataFromGenerator",
    "DataFromIterable",
    "DataFromList",
    "DataFromQueue",
    "DataSpeed",
    "Datapoint",
    "ErrorCounts",
    "ErrorPolicy",
    "FakeData",
    "FixedSizeData",
    "HDF5Data",
    "HDF5Serializer",
    "ImageFolder",
    "ImageFromFile",
    "ImageList",
    "IndexedFlow",
    "JoinData",
    "JpegCropBatches",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "LMDBSerializer",
    "LocallyShuffleData",
    "MapData",
    "MapDataComponent",
    "MixUp",
    "MultiProcessMapAndBatchData",
    "MultiProcessMapAndBatchDataZMQ",
    "MultiProcessMapData",
    "MultiProcessMapDataZMQ",
    "MultiProcessPrefetchData",
    "MultiProcessRunner",
    "MultiProcessRunnerZMQ",
    "MultiThreadMapData",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "NumpySerializer",
    "PrefetchData",
    "PrefetchDataZMQ",
    "PrintData",
    "ProcessOnce",
    "ProxyDataFlow",
    "RNGDataFlow",
    "RandomChooseData",
    "RandomMixData",
    "RandomStream",
    "RecordData",
    "RemoteDataZMQ",
    "RepeatedData",
    "RepeatedDataPoint",
    "SelectComponent",
    "StageErrors",
    "StageStats",
    "TFRecordData",
    "TFRecordSerializer",
    "TestDataSpeed",
    "UnknownLengthError",
    "augment_component",
    "augment_components",
    "dataflow_to_dataset",
    "dataset",
    "decode_image",
    "encode_image",
    "fix_rng_seed",
    "from_huggingface",
    "from_tf_dataset",
    "from_torch",
    "imgaug",
    "read_image",
    "send_dataflow_zmq",
    "stack_datapoints",
    "to_huggingface",
    "to_tf_dataset",
    "to_torch",
]

_HOMES = {
    "base": "DataFlow Datapoint ProxyDataFlow RNGDataFlow StageErrors StageStats UnknownLengthError",
    "indexed": "IndexedFlow",
    "random": "RandomStream fix_rng_seed",
    "policy": "ErrorCounts ErrorPolicy",
    "sources": "DataFromArrays DataFromGenerator DataFromIterable DataFromList DataFromQueue FakeData",
    "stages.batching": "BatchData BatchDataByShape stack_datapoints",
    "stages.buffering": "CacheData LocallyShuffleData",
    "stages.joining": "ConcatData JoinData RandomChooseData RandomMixData",
    "stages.mapping": "MapData MapDataComponent ProcessOnce SelectComponent",
    "stages.repeating": "FixedSizeData RepeatedData RepeatedDataPoint",
    "speed": "DataSpeed PrintData TestDataSpeed",
    "parallel": (
        "MultiProcessMapAndBatchData MultiProcessMapAndBatchDataZMQ MultiProcessMapData "
        "MultiProcessMapDataZMQ MultiProcessPrefetchData MultiProcessRunner MultiProcessRunnerZMQ "
        "MultiThreadMapData MultiThreadPrefetchData MultiThreadRunner PrefetchData PrefetchDataZMQ"
    ),
    "record_data": "RecordData",
    "remote": "RemoteDataZMQ send_dataflow_zmq",
    "augment": (
        "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates augment_component augment_components"
    ),
    "imgaug.mixing": "CutMix MixUp",
    "images": "ImageFolder ImageFromFile ImageList decode_image encode_image read_image",
    "formats": (
        "HDF5Data HDF5Serializer LMDBData LMDBDataDecoder LMDBDataPoint LMDBSerializer NumpySerializer "
        "TFRecordData TFRecordSerializer"
    ),
    "adapters": (
        "dataflow_to_dataset from_huggingface from_tf_dataset from_torch to_huggingface to_tf_dataset to_torch"
    ),
    "fast": "JpegCropBatches",
}
"""Module: the public names that it defines."""

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_SUBMODULES = ("dataset", "imgaug")
_EXTRAS = {"h5py": "hdf5", "datasets": "huggingface", "tensorflow": "tensorflow", "torch": "torch"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        nearest = nearest_names(name, __all__)
        hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
    try:
        module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise MissingDependencyError(package, extra=_EXTRAS[package], purpose=f"`{__name__}.{name}`") from error
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
