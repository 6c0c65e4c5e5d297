"""Reader of the scalars in TensorBoard event files that another program is writing.

It is the counterpart of ``ziggurat.engine.monitors.tensorboard``: a file is a sequence of TFRecords, each of which
holds an ``Event`` message (tensorflow/core/util/event.proto). TensorFlow 1, PyTorch and tensorboardX write a number as
``simple_value``; TensorFlow 2 writes it as a tensor with one element.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ziggurat.protobuf_wire import WireFormatError, as_message, fields, masked_crc32c, signed

__all__ = ["EventFileReader", "ScalarPoint", "is_event_file"]

_MARK: Final = "tfevents"
_HEADER: Final = struct.Struct("<QI")
_MOST_RECORD_BYTES: Final = 16 << 20
"""A longer record is no number; it is passed over without being held in memory."""

_MOST_BYTES: Final = 4 << 20
"""So much is read at a time, so that numbers appear while a long file is read."""


class ScalarPoint(NamedTuple):
    """One number of an event file."""

    tag: str
    value: float
    step: int
    time: float


def is_event_file(name: str) -> bool:
    """Return whether a file name is that of a TensorBoard event file."""
    return _MARK in name and not name.endswith((".v2.tmp", ".profile-empty"))


class EventFileReader:
    """Reads an event file from where the last call ended.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._is_damaged = False

    def read(self) -> list[ScalarPoint]:
        """Return the numbers that are new, of a part of the file if much is new; an empty list at its end.

        A record that is not yet whole waits for the next call. Behind a damaged one, nothing can be found any more.
        """
        if self._is_damaged:
            return []
        points: list[ScalarPoint] = []
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                last = self._offset + _MOST_BYTES
                while self._offset < last and self._offset + _HEADER.size <= size:
                    file.seek(self._offset)
                    head = file.read(_HEADER.size)
                    length, checksum = _HEADER.unpack(head)
                    if masked_crc32c(head[:8]) != checksum:
                        self._is_damaged = True
                        break
                    end = self._offset + _HEADER.size + length + 4
                    if end > size:
                        break
                    self._offset = end
                    if length <= _MOST_RECORD_BYTES:
                        points += _points(file.read(length))
        except OSError:  # gone, or not readable: other files may be
            pass
        return points


def _points(message: bytes) -> Iterator[ScalarPoint]:
    """Yield the numbers of one ``Event``; a damaged one has none."""
    time, step, summary = 0.0, 0, None
    try:
        for number, value in fields(message):
            if number == 1 and not isinstance(value, int):
                (time,) = struct.unpack("<d", value)
            elif number == 2 and isinstance(value, int):
                step = signed(value)
            elif number == 5:
                summary = as_message(value)
        if summary is None or not math.isfinite(time):
            return
        for number, value in fields(summary):
            found = _scalar(as_message(value)) if number == 1 else None
            if found is not None:
                yield ScalarPoint(*found, step, time)
    except (WireFormatError, struct.error, UnicodeDecodeError):
        return


def _scalar(message: memoryview) -> tuple[str, float] | None:
    """Return name and number of a ``Summary.Value``; None for another kind."""
    tag, value, plugin = "", None, ""
    tensor: memoryview | None = None
    for number, content in fields(message):
        if number == 1:
            tag = str(as_message(content), "utf-8")
        elif number == 2:
            (value,) = struct.unpack("<f", as_message(content))
        elif number == 8:
            tensor = as_message(content)
        elif number == 9:
            plugin = _plugin(as_message(content))
    if value is None and tensor is not None and plugin in ("", "scalars"):
        value = _single(tensor)
    return (tag, float(value)) if tag and value is not None else None


def _plugin(metadata: memoryview) -> str:
    for number, data in fields(metadata):
        if number == 1:
            return next((str(as_message(each), "utf-8") for key, each in fields(as_message(data)) if key == 1), "")
    return ""


def _half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


_TYPES: Final[dict[int, tuple[int, Callable[[bytes], Any]]]] = {
    1: (4, lambda data: struct.unpack("<f", data)[0]),
    2: (8, lambda data: struct.unpack("<d", data)[0]),
    3: (4, lambda data: struct.unpack("<i", data)[0]),
    9: (8, lambda data: struct.unpack("<q", data)[0]),
    14: (2, lambda data: struct.unpack("<f", b"\0\0" + data)[0]),  # bfloat16: the upper half of a float
    19: (2, _half),
}
"""``DataType`` → bytes of an element, and its value: float, double, int32, int64, bfloat16, half."""

_FIELDS: Final = {1: 5, 2: 6}
"""``DataType`` → field of a ``TensorProto`` with the values, if they are not in ``tensor_content``."""


def _single(tensor: memoryview) -> float | None:
    """Return the only element of a ``TensorProto``; None if there are others, or none."""
    known = list(fields(tensor))
    kind = next((value for number, value in known if number == 1 and isinstance(value, int)), 0)
    if kind not in _TYPES:
        return None
    size, decoded = _TYPES[kind]
    for number, value in known:
        if number in (4, _FIELDS.get(kind)) and not isinstance(value, int):
            return float(decoded(bytes(value))) if len(value) == size else None
    return None
