"""Flows that read TFRecord files; TensorFlow is not needed."""

from __future__ import annotations

import os

from ziggurat.dataflow.formats.records_flow import RecordsFlow
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.records.tfrecord import TFRecordReader

__all__ = ["TFRecordData"]


class TFRecordData(RecordsFlow):
    """The records of a TFRecord file: datapoints ``[value]``, bytes.

    Any record can be read at any time: the file is scanned once where it has no side file ``NAME.index``.

    Args:
        path: the file, uncompressed.
        shuffle: a new random order in every pass.
        on_error: what happens with a record that cannot be read: "raise", "skip", "log", or an ``ErrorPolicy``.

    Raises:
        DataError: where there is no such file, or it is no TFRecord file or compressed.
    """

    def __init__(
        self, path: str | os.PathLike[str], shuffle: bool = False, *, on_error: OnError | ErrorPolicy = "raise"
    ) -> None:
        super().__init__(TFRecordReader(path), shuffle=shuffle, on_error=on_error)

    def datapoint(self, index: int) -> list[bytes]:
        """Return the value of a record."""
        return [self.reader.get(index)]
