"""TensorBoard event files, byte for byte, without TensorFlow or protocol-buffer libraries.

A file is a sequence of TFRecords, each of which holds an ``Event`` message (tensorflow/core/util/event.proto). Only
five kinds are written, each with a handful of fields. A library for them would cost seconds at the start of every
job, and tensorboardX imports PyTorch when it is installed.
"""

from __future__ import annotations

import struct

import google_crc32c

__all__ = [
    "file_version",
    "graph_event",
    "image_event",
    "record",
    "restart_event",
    "scalar_event",
    "summary_event",
]

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_START = 1
"""``SessionLog.SessionStatus.START``."""
_COLORSPACES = {1: 1, 2: 2, 3: 3, 4: 4}
"""Channels → ``Summary.Image.colorspace``: gray, gray and alpha, RGB, RGBA."""


def record(message: bytes) -> bytes:
    """Return a message as a TFRecord: length and content, each with a masked CRC-32C behind it."""
    length = struct.pack("<Q", len(message))
    return b"".join((length, _masked_checksum(length), message, _masked_checksum(message)))


def file_version(time: float) -> bytes:
    """Return the first event of every file."""
    return _key(1, _DOUBLE) + struct.pack("<d", time) + _bytes(3, b"brain.Event:2")


def restart_event(time: float, step: int) -> bytes:
    """Return the event that lets TensorBoard hide what earlier files say of ``step`` and later ones."""
    return _event(time, step) + _bytes(7, _integer(1, _START))


def graph_event(time: float, graph: bytes) -> bytes:
    """Return the event of a serialized ``GraphDef``, which TensorBoard shows as the graph."""
    return _event(time, 0) + _bytes(4, graph)


def scalar_event(time: float, step: int, tag: str, value: float) -> bytes:
    """Return one point of a curve."""
    content = _bytes(1, tag.encode()) + _key(2, _FLOAT) + _float32(value)
    return summary_event(time, step, _bytes(1, content))


def image_event(time: float, step: int, tag: str, shape: tuple[int, int, int], png: bytes) -> bytes:
    """Return one image.

    Args:
        time: seconds since 1970.
        step: ``global_step``.
        tag: its name.
        shape: (height, width, channels).
        png: the encoded image.
    """
    height, width, channels = shape
    picture = _integer(1, height) + _integer(2, width) + _integer(3, _COLORSPACES[channels]) + _bytes(4, png)
    return summary_event(time, step, _bytes(1, _bytes(1, tag.encode()) + _bytes(4, picture)))


def summary_event(time: float, step: int, summary: bytes) -> bytes:
    """Return the event of a serialized ``Summary`` message."""
    return _event(time, step) + _bytes(5, summary)


def _event(time: float, step: int) -> bytes:
    return _key(1, _DOUBLE) + struct.pack("<d", time) + _integer(2, step)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _integer(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _float32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # finite, and too large for 32 bits
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _masked_checksum(data: bytes) -> bytes:
    checksum = google_crc32c.value(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)
