"""JPEG header parser for the fast path: size, orientation, and byte offsets of segments and compressed data."""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["TILE_INDEX_NAME", "JpegHeader", "read_jpeg_header"]

TILE_INDEX_NAME = b"ziggurat tiles 1\0"
"""How the segment that lists the tiles of a prepared record begins (``ziggurat.dataflow.fast.tiles``)."""

_FRAME = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended and progressive, all with Huffman codes
_OTHER_FRAMES = frozenset({*range(0xC3, 0xD0)} - {0xC4, 0xC8, 0xCC})
_START_OF_SCAN, _APP1, _TILE_INDEX_MARKER = 0xDA, 0xE1, 0xE9
_ORIENTATION_TAG = 0x0112
_END = b"\xff\xd9"  # cannot stand in compressed data
_BYTES_BEHIND = 64
_MARKER = struct.Struct(">BBH")
_FRAME_HEAD = struct.Struct(">BHHB")


class JpegHeader(NamedTuple):
    """What the header says.

    Args:
        width: columns in the file, before any rotation.
        height: rows in the file.
        orientation: from 1 (upright) to 8, as EXIF numbers them.
        unit_width: width in pixels of the smallest piece that is coded together (8 or 16, sometimes 32).
        unit_height: height in pixels of such a piece.
        frame_start: where the segment with width and height begins.
        scan_start: where the compressed data begins.
        tiles_end: end of the segment that lists tiles; 0 where there is none.
    """

    width: int
    height: int
    orientation: int
    unit_width: int
    unit_height: int
    frame_start: int
    scan_start: int
    tiles_end: int


def read_jpeg_header(data: bytes) -> JpegHeader | None:
    """Return the header of a JPEG file that the engines decode alike; None for all other data.

    That is a complete file of 8 bits with 1 or 3 components, baseline or progressive.
    """
    if not data.startswith(b"\xff\xd8\xff") or not (data.endswith(_END) or data.find(_END, -_BYTES_BEHIND) > 0):
        return None
    try:
        return _parse(data)
    except (IndexError, struct.error):
        return None


def _parse(data: bytes) -> JpegHeader | None:
    place, orientation, tiles_end = 2, 1, 0
    frame: tuple[int, int, int, int, int] | None = None
    while True:
        start, marker, length = _MARKER.unpack_from(data, place)
        if start != 0xFF or length < 2 or marker in _OTHER_FRAMES:
            return None
        if marker == _START_OF_SCAN:
            if frame is None:
                return None
            return JpegHeader(*frame[:2], orientation, *frame[2:], place + 2 + length, tiles_end)
        if marker in _FRAME:
            frame = _frame(data, place)
            if frame is None:
                return None
        elif marker == _APP1:
            orientation = _orientation(data[place + 4 : place + 2 + length]) or orientation
        elif marker == _TILE_INDEX_MARKER and data.startswith(TILE_INDEX_NAME, place + 4) and place == 2:
            tiles_end = place + 2 + length
        place += 2 + length


def _frame(data: bytes, place: int) -> tuple[int, int, int, int, int] | None:
    """Return width, height, size of the smallest piece, and place."""
    precision, height, width, components = _FRAME_HEAD.unpack_from(data, place + 4)
    if precision != 8 or components not in (1, 3) or not width or not height:
        return None
    if components == 1:
        return width, height, 8, 8, place
    factors = data[place + 11 : place + 10 + 3 * components : 3]
    return width, height, 8 * max(factor >> 4 for factor in factors), 8 * max(f & 15 for f in factors), place


def _orientation(content: bytes) -> int:
    """Return the orientation that an EXIF segment gives; 0 where it gives none."""
    if not content.startswith(b"Exif\0\0") or content[6:8] not in (b"II", b"MM"):
        return 0
    tiff = content[6:]
    order = "<" if tiff[:2] == b"II" else ">"
    try:
        (first,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, first)
        for number in range(entries):
            tag, _kind, _count, value = struct.unpack_from(order + "HHIH", tiff, first + 2 + 12 * number)
            if tag == _ORIENTATION_TAG:
                return value if 1 <= value <= 8 else 0
    except struct.error:
        pass
    return 0
