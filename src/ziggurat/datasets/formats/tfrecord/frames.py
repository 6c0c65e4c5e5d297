"""Frames of TFRecord files: sequential reading, random access by offset, and writing.

A frame is the length (uint64, little-endian), its masked CRC-32C, the content, and the content's masked CRC-32C.
Unlike the stores of ``ziggurat.records``, these files come from third parties and have no side file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import google_crc32c

from ziggurat.errors import DataError, DatapointError

__all__ = ["Frame", "FrameError", "frame", "frames_of", "read_frame"]

_LENGTH: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_COMPRESSED: Final = (b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda")


class FrameError(DataError):
    """From here on a file has no frames: it is cut off, damaged, compressed, or something else."""

    code = "frame"


class Frame(NamedTuple):
    """One record.

    Args:
        offset: where its frame starts, in bytes.
        content: None where it is not what its checksum says.
    """

    offset: int
    content: bytes | None


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the records of a file, with their checksums checked.

    Raises:
        FrameError: where there is no frame; what follows cannot be found.
    """
    try:
        size_bytes = path.stat().st_size
        with path.open("rb", buffering=1 << 20) as file:
            offset = 0
            while offset < size_bytes:
                content, length = _content(file, path, offset, size_bytes)
                yield Frame(offset, content)
                offset += _LENGTH.size + length + _CHECKSUM.size
    except OSError as error:
        raise FrameError("A TFRecord file can be read.", received=f"`{path}`: {error.strerror}") from error


def read_frame(path: Path, offset: int) -> bytes:
    """Return the record whose frame starts at ``offset``.

    Raises:
        DatapointError: where it cannot be read, or its checksum is wrong.
    """
    key = f"{path}#{offset}"
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content, _length = _content(file, path, offset, path.stat().st_size)
    except (OSError, FrameError) as error:
        raise DatapointError(key, f"it cannot be read ({error}).") from error
    if content is None:
        raise DatapointError(key, "its checksum is wrong; the file is damaged.")
    return content


def frame(content: bytes) -> bytes:
    """Return a record with its frame."""
    length = struct.pack("<Q", len(content))
    return b"".join((length, _CHECKSUM.pack(_masked(length)), content, _CHECKSUM.pack(_masked(content))))


def _content(file: BinaryIO, path: Path, offset: int, size_bytes: int) -> tuple[bytes | None, int]:
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise _no_frame(path, f"cut off at byte {offset}")
    length, checksum = _LENGTH.unpack(head)
    if checksum != _masked(head[:8]):
        if offset == 0 and head[:2] in _COMPRESSED:
            raise _no_frame(path, "a compressed file, which has no random access", "Decompress it first.")
        raise _no_frame(path, f"no record at byte {offset}")
    if offset + _LENGTH.size + length + _CHECKSUM.size > size_bytes:
        raise _no_frame(path, f"cut off in the record at byte {offset}")
    content = file.read(length)
    return (content if _CHECKSUM.unpack(file.read(4))[0] == _masked(content) else None), length


def _masked(data: bytes) -> int:
    checksum: Any = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _no_frame(path: Path, received: str, advice: str = "Get it anew.") -> FrameError:
    return FrameError("A TFRecord file is a row of records.", received=f"`{path}`: {received}", advice=advice)
