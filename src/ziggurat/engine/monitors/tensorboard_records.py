"""TensorBoard event files, byte for byte, without TensorFlow or protocol-buffer libraries.

A file is a sequence of TFRecords (``tfrecord_frame``), each of which holds an ``Event`` message
(tensorflow/core/util/event.proto). Only five kinds are written, each with a handful of fields. A library for them would
cost seconds at the start of every job, and tensorboardX imports PyTorch when it is installed.
"""

from __future__ import annotations

from ziggurat.protobuf_wire import bytes_field, double_field, float_field, integer_field

__all__ = ["file_version", "graph_event", "image_event", "restart_event", "scalar_event", "summary_event"]

_START = 1
"""``SessionLog.SessionStatus.START``."""
_COLORSPACES = {1: 1, 2: 2, 3: 3, 4: 4}
"""Channels → ``Summary.Image.colorspace``: gray, gray and alpha, RGB, RGBA."""


def file_version(time: float) -> bytes:
    """Return the first event of every file."""
    return double_field(1, time) + bytes_field(3, b"brain.Event:2")


def restart_event(time: float, step: int) -> bytes:
    """Return the event that lets TensorBoard hide what earlier files say of ``step`` and later ones."""
    return _event(time, step) + bytes_field(7, integer_field(1, _START))


def graph_event(time: float, graph: bytes) -> bytes:
    """Return the event of a serialized ``GraphDef``, which TensorBoard shows as the graph."""
    return _event(time, 0) + bytes_field(4, graph)


def scalar_event(time: float, step: int, tag: str, value: float) -> bytes:
    """Return one point of a curve."""
    content = bytes_field(1, tag.encode()) + float_field(2, value)
    return summary_event(time, step, bytes_field(1, content))


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
    size = integer_field(1, height) + integer_field(2, width)
    picture = size + integer_field(3, _COLORSPACES[channels]) + bytes_field(4, png)
    return summary_event(time, step, bytes_field(1, bytes_field(1, tag.encode()) + bytes_field(4, picture)))


def summary_event(time: float, step: int, summary: bytes) -> bytes:
    """Return the event of a serialized ``Summary`` message."""
    return _event(time, step) + bytes_field(5, summary)


def _event(time: float, step: int) -> bytes:
    return double_field(1, time) + integer_field(2, step)
