"""Data flows with the argument names, and the pickled files, of older Tensorpack."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ziggurat import dataflow
from ziggurat.compat.tensorpack.older import OlderNames
from ziggurat.errors import StateError

__all__ = [
    "BatchDataByShape",
    "DataFlowReentrantGuard",
    "DataFlowTerminated",
    "DataFromGenerator",
    "ImageFromFile",
    "JoinData",
    "LMDBDataPoint",
    "LMDBSerializer",
    "LocallyShuffleData",
    "MultiProcessPrefetchData",
    "MultiThreadMapData",
    "MultiThreadPrefetchData",
    "NumpySerializer",
    "PrefetchData",
    "PrefetchDataZMQ",
    "PrintData",
    "RepeatedData",
    "RepeatedDataPoint",
    "TFRecordData",
    "TFRecordSerializer",
    "ThreadedMapData",
    "dump_dataflow_to_lmdb",
    "dump_dataflow_to_tfrecord",
]


class DataFlowTerminated(BaseException):
    """Says that a flow is over for good."""


class DataFlowReentrantGuard:
    """A lock that refuses, where others wait: for flows with one pass at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise StateError(
                "A data flow has one pass at a time.",
                received="a second one",
                advice="End the first pass, or make another flow.",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class BlueFirst:
    """Gives color images as OpenCV has them, blue, green, red, which is what Tensorpack's sources of images do.

    Its programs read single images by ``cv2.imread``, and have weights that were trained on such images.
    """

    def _load(self, path: str) -> Any:
        loaded = super()._load(path)  # pyright: ignore[reportAttributeAccessIssue]
        is_color = isinstance(loaded, np.ndarray) and loaded.ndim == 3 and loaded.shape[2] == 3
        return np.ascontiguousarray(loaded[:, :, ::-1]) if is_color else loaded


class ImageFromFile(BlueFirst, dataflow.ImageFromFile):
    """``ziggurat.dataflow.ImageFromFile``; the channels of color images are blue, green and red."""


class RepeatedData(OlderNames, dataflow.RepeatedData):
    """``ziggurat.dataflow.RepeatedData``; ``nr`` is another name of ``num``."""

    older = {"nr": "num"}


class RepeatedDataPoint(OlderNames, dataflow.RepeatedDataPoint):
    """``ziggurat.dataflow.RepeatedDataPoint``; ``nr`` is another name of ``num``."""

    older = {"nr": "num"}


class LocallyShuffleData(OlderNames, dataflow.LocallyShuffleData):
    """``ziggurat.dataflow.LocallyShuffleData``; ``nr_reuse`` is another name of ``num_reuse``."""

    older = {"nr_reuse": "num_reuse"}


class PrintData(OlderNames, dataflow.PrintData):
    """``ziggurat.dataflow.PrintData``; ``label`` is another name of ``name``."""

    older = {"label": "name"}


class JoinData(dataflow.JoinData):
    """``ziggurat.dataflow.JoinData``; a flow that is given twice is copied, so that each place has its own passes.

    Args:
        df_lists: the flows.
    """

    def __init__(self, df_lists: Sequence[dataflow.DataFlow]) -> None:
        seen: list[dataflow.DataFlow] = []
        for flow in df_lists:
            seen.append(copy.deepcopy(flow) if any(flow is other for other in seen) else flow)
        super().__init__(seen)


class BatchDataByShape(dataflow.ProxyDataFlow):
    """Batches of datapoints whose shapes are the same; what does not fill a batch waits for the passes to come.

    Its length is that of the flow inside, as in Tensorpack. A pass goes on until it has one batch at least.

    Args:
        ds: the flow.
        batch_size: datapoints in a batch.
        idx: the component whose shape tells.
    """

    def __init__(self, ds: dataflow.DataFlow, batch_size: int, idx: int | str) -> None:
        super().__init__(ds)
        self.batch_size = int(batch_size)
        self.idx = idx
        self._waiting: defaultdict[tuple[int, ...], list[Any]] = defaultdict(list)

    def __len__(self) -> int:
        """Return the length of the flow inside: more than its batches."""
        return len(self.ds)

    def __iter__(self) -> Iterator[Any]:
        """Yield batches."""
        batches, is_empty = 0, False
        while not batches and not is_empty:
            is_empty = True
            for datapoint in self.ds:
                is_empty = False
                waiting = self._waiting[datapoint[self.idx].shape]
                waiting.append(datapoint)
                if len(waiting) == self.batch_size:
                    batches += 1
                    yield dataflow.stack_datapoints(list(waiting))
                    waiting.clear()


class MultiProcessPrefetchData(OlderNames, dataflow.MultiProcessPrefetchData):
    """``ziggurat.dataflow.MultiProcessRunner`` with the older names of its arguments."""

    older = {"nr_prefetch": "num_prefetch", "nr_proc": "num_proc"}


PrefetchData = MultiProcessPrefetchData
"""Older name of ``MultiProcessPrefetchData``."""


class PrefetchDataZMQ(OlderNames, dataflow.PrefetchDataZMQ):
    """``ziggurat.dataflow.MultiProcessRunnerZMQ`` with the older names of its arguments."""

    older = {"nr_proc": "num_proc"}


class MultiThreadPrefetchData(OlderNames, dataflow.MultiThreadPrefetchData):
    """``ziggurat.dataflow.MultiThreadRunner`` with the older names of its arguments."""

    older = {"nr_prefetch": "num_prefetch", "nr_thread": "num_thread"}


class MultiThreadMapData(OlderNames, dataflow.MultiThreadMapData):
    """``ziggurat.dataflow.MultiThreadMapData`` with the older names of its arguments."""

    older = {"nr_thread": "num_thread"}


ThreadedMapData = MultiThreadMapData
"""Older name of ``MultiThreadMapData``."""


class DataFromGenerator(dataflow.DataFromGenerator):
    """``ziggurat.dataflow.DataFromGenerator``.

    Args:
        gen: an iterable, or a function that returns one.
        size: datapoints in a pass; of the iterable where it is None.
    """

    def __init__(self, gen: Any, size: int | None = None) -> None:
        super().__init__(gen)
        self._given_size = size

    def __len__(self) -> int:
        """Return the datapoints in a pass."""
        return super().__len__() if self._given_size is None else self._given_size


class LMDBDataPoint(dataflow.LMDBDataPoint):
    """``ziggurat.dataflow.LMDBDataPoint``; files with pickles are read: use those that you trust."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_pickle": True, **options})


class LMDBSerializer(dataflow.LMDBSerializer):
    """``ziggurat.dataflow.LMDBSerializer``; files with pickles are read: use those that you trust."""

    @staticmethod
    def load(path: Any, shuffle: bool = True, *, allow_pickle: bool = True) -> dataflow.DataFlow:
        """Return a flow of the saved datapoints."""
        return dataflow.LMDBSerializer.load(path, shuffle, allow_pickle=allow_pickle)


class NumpySerializer(dataflow.NumpySerializer):
    """``ziggurat.dataflow.NumpySerializer``; files with pickles are read: use those that you trust."""

    @staticmethod
    def load(path: Any, shuffle: bool = True, *, allow_pickle: bool = True) -> dataflow.DataFlow:
        """Return a flow of the saved datapoints."""
        return dataflow.NumpySerializer.load(path, shuffle, allow_pickle=allow_pickle)


class TFRecordSerializer(dataflow.TFRecordSerializer):
    """``ziggurat.dataflow.TFRecordSerializer``; files with pickles are read: use those that you trust."""

    @staticmethod
    def load(
        path: Any, size: int | None = None, *, shuffle: bool = False, allow_pickle: bool = True
    ) -> dataflow.DataFlow:
        """Return a flow of the saved datapoints."""
        return dataflow.TFRecordSerializer.load(path, size, shuffle=shuffle, allow_pickle=allow_pickle)


def TFRecordData(path: Any, size: int | None = None) -> dataflow.DataFlow:  # noqa: N802 - Tensorpack's name
    """Return a flow of the datapoints in a file of TFRecord.

    Args:
        path: the file, written by ``dump_dataflow_to_tfrecord`` or by Tensorpack.
        size: datapoints in it.
    """
    return TFRecordSerializer.load(path, size)


def dump_dataflow_to_lmdb(df: Any, lmdb_path: Any, write_frequency: int = 5000) -> None:
    """Write one pass of a flow to a file of LMDB.

    Args:
        df: the flow.
        lmdb_path: the file; nothing must stand there.
        write_frequency: of no meaning here.
    """
    dataflow.LMDBSerializer.save(df, lmdb_path, write_frequency)


def dump_dataflow_to_tfrecord(df: Any, path: Any) -> None:
    """Write one pass of a flow to a file of TFRecord.

    Args:
        df: the flow.
        path: the file; nothing must stand there.
    """
    dataflow.TFRecordSerializer.save(df, path)
