"""Codec between values and bytes, for record stores and between machines: plain data only, never a pickle.

A packed value is one message::

    bytes 0-3    magic, b"ZGV1"
    bytes 4-7    CRC-32C of everything from byte 8 to the end of the header, uint32
    bytes 8-15   length of the header, uint64
    bytes 16-23  length of the whole message, uint64
    header       MessagePack: the value, with an extension for each array, tuple, big integer and large `bytes`
    buffers      the content of arrays and large `bytes`, each padded to start at a multiple of 64 bytes

All numbers are little-endian. Reading a message runs no code of the sender's, costs memory in proportion to the
message only, and has no limit below 2**63 bytes. Buffers are in the order in which the header names them, so a
message has exactly one reading.
"""

from __future__ import annotations

import struct
from typing import Any

import google_crc32c

from ziggurat.records.packing import ALIGN_BYTES, EncodingError, pack_header
from ziggurat.records.unpacking import DecodingError, damaged, unpack_header

__all__ = ["DecodingError", "EncodingError", "pack", "pack_parts", "unpack"]

_MAGIC = b"ZGV1"
_PREFIX = struct.Struct("<4sIQQ")
_PADDING = bytes(ALIGN_BYTES)


def pack(value: Any) -> bytes:
    """Return ``value`` as one message.

    Args:
        value: ``None``, a bool, int (of any size), float, str, bytes, NumPy scalar or array (of any dtype but objects),
            or a list, tuple or dict of such values, nested at will. Lists stay lists and tuples tuples. Of an array the
            dtype (byte order included), shape and content are kept, not the memory order. ``bytearray`` and
            ``memoryview`` come back as bytes, and subclasses (a named tuple, an ``OrderedDict``, an ``IntEnum``) as
            their plain base.

    Raises:
        EncodingError: for anything else; the message names the type and its place.
    """
    return b"".join(pack_parts(value))


def pack_parts(value: Any) -> list[Any]:
    """Return the message of ``pack()`` in pieces (bytes and memory views) that need not be copied together first.

    The views show the arrays themselves: write the pieces out before the arrays change.
    """
    header, buffers = pack_header(value)
    parts: list[Any] = [b"", header]
    position = _PREFIX.size + len(header)
    for buffer in buffers:
        padding = -position % ALIGN_BYTES
        parts += (_PADDING[:padding], buffer)
        position += padding + buffer.nbytes
    lengths = struct.pack("<QQ", len(header), position)
    checksum = google_crc32c.extend(google_crc32c.value(lengths), header)
    parts[0] = struct.pack("<4sI", _MAGIC, checksum) + lengths
    return parts


def unpack(buffer: Any, *, copy: bool = False) -> Any:
    """Return the value in a message.

    Args:
        buffer: bytes, a bytearray, a memory view, or anything with the buffer protocol.
        copy: whether arrays get memory of their own, which may be written to. Without it they are views of ``buffer``
            and keep it alive; they can be written to where ``buffer`` can. ``bytes`` are always copied.

    Raises:
        DecodingError: where the message is garbage, is cut off, has something after its end, or its header was changed.
            (The content of buffers has no checksum here: stores keep one.)
    """
    view = memoryview(buffer).cast("B")
    return unpack_header(_checked_header(view), view, _PREFIX.size, copy)


def _checked_header(view: memoryview) -> bytes:
    if view.nbytes < _PREFIX.size:
        raise damaged(f"{view.nbytes} bytes; the shortest message has {_PREFIX.size + 1}")
    magic, checksum, header_bytes, total_bytes = _PREFIX.unpack_from(view)
    if magic != _MAGIC:
        raise damaged(f"{view.nbytes} bytes that start with {bytes(view[:8])!r}")
    if total_bytes != view.nbytes:
        raise damaged(f"{view.nbytes} bytes of a message of {total_bytes}")
    if header_bytes > total_bytes - _PREFIX.size:
        raise damaged("a header that is longer than the message")
    start = _PREFIX.size
    header = bytes(view[start : start + header_bytes])
    if google_crc32c.extend(google_crc32c.value(bytes(view[8:start])), header) != checksum:
        raise damaged("a header whose checksum is wrong")
    return header
