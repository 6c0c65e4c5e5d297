"""Image header parser: format, size, and whether OpenCV decodes the file correctly."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

__all__ = ["ImageHeader", "read_header"]

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND\xaeB`\x82"
_PNG_WITHOUT_ALPHA = {0, 2, 3}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
# In the compressed data a marker is 0xFF and another byte than 0 (stuffing), 0xD0-0xD7 (restart) and 0xFF (filling).
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


@dataclass(frozen=True)
class ImageHeader:
    """What the header says.

    Args:
        file_format: "jpeg", "png" or "other".
        width: width in pixels, before any rotation; 0 where unknown.
        height: height in pixels; 0 where unknown.
        complete: False where the file was cut off.
        plain: whether it is one of the forms that every decoder turns into the same pixels: a JPEG of 8 bits with 1 or
            3 components, a PNG without transparency.
        depth: bits of a value in a PNG; 0 for other files.
    """

    file_format: str
    width: int = 0
    height: int = 0
    complete: bool = True
    plain: bool = False
    depth: int = 0


def read_header(data: bytes) -> ImageHeader:
    """Return what the header of an encoded image says; damaged and unknown headers are "other"."""
    try:
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
        if data.startswith(_PNG_SIGNATURE):
            return _png(data)
    except (IndexError, struct.error):
        pass
    return ImageHeader("other")


def _jpeg(data: bytes) -> ImageHeader:
    width = height = components = precision = 0
    for marker, start in _segments(data):
        if marker in _FRAMES and not width:
            precision, height, width, components = struct.unpack_from(">BHHB", data, start)
        elif marker == 0xDA:
            plain = precision == 8 and components in (1, 3)
            return ImageHeader("jpeg", width, height, _has_end(data, start), plain)
    return ImageHeader("jpeg", width, height, complete=False)


def _segments(data: bytes) -> list[tuple[int, int]]:
    """Return marker and start of the content of each segment, up to the start of the first scan."""
    found = []
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # filling
            place += 1
            continue
        found.append((marker, place + 4))
        if marker == 0xDA:
            break
        place += 2 if marker in _WITHOUT_LENGTH else 2 + int.from_bytes(data[place + 2 : place + 4])
    return found


def _has_end(data: bytes, place: int) -> bool:
    """Whether an end-of-image marker follows the compressed data; bytes behind it do no harm."""
    if data.endswith(b"\xff\xd9"):
        return True
    while True:
        match = _MARKER.search(data, place)
        if match is None:
            return False
        if match.group() == b"\xff\xd9":
            return True
        place = match.end() + int.from_bytes(data[match.end() : match.end() + 2])


def _png(data: bytes) -> ImageHeader:
    width, height, depth, color = struct.unpack_from(">IIBB", data, 16)
    start_of_pixels = data.find(b"IDAT", 33)
    transparent = color not in _PNG_WITHOUT_ALPHA or data.find(b"tRNS", 33, start_of_pixels) > 0
    plain = start_of_pixels > 0 and not transparent
    return ImageHeader("png", width, height, _PNG_END in data[-64:], plain, depth)
