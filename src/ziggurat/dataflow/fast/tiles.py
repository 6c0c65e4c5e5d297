"""Tiled JPEG files, from which a region is cut out without decoding, and the parser of JPEG headers.

A tiled file is a complete JPEG file with an index of its tiles. A tile is a stretch of a row of coding units between
two restart markers (ITU-T T.81, F.2.1.3.1): it can be decoded without the tiles before it. The first segment of a tiled
file lists the length of every tile. ``cut()`` copies the header and the tiles that a box touches into a new, smaller
JPEG file, which any decoder reads.

The segment (marker APP9) holds, all big-endian: a name, units per tile (uint16), tiles per row (uint16), rows of
tiles (uint16), bytes per length (uint16: 2 or 4), and the lengths in bytes, excluding restart markers.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

__all__ = ["JpegHeader", "cut", "read_jpeg_header", "tile_units", "with_tiles"]

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

_HEAD = struct.Struct(">HHHH")
_LENGTHS_AT = 2 + 4 + len(TILE_INDEX_NAME) + _HEAD.size
_MOST_SEGMENT_BYTES = 0xFFFF
_RESTART_0, _END_OF_IMAGE = 0xD0, 0xD9
_RESTART_MARKERS = np.arange(_RESTART_0, _RESTART_0 + 8, dtype=np.uint8)
_CONTEXT = 2  # pixels beside a box that the smooth upsampling of color looks at
_WIDTHS = (4, 5, 6, 3, 7, 8, 2)  # units in a tile, best first


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
        # Only as the first segment: elsewhere another program has copied it, and the tiles may have moved.
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
    # Each component has three bytes: its id, its sampling factors (4 bits each), its table.
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


class _Tiles(NamedTuple):
    width: int  # in pixels
    height: int
    columns: int
    starts: np.ndarray  # (tiles + 1,) where each tile begins in the file, and where the file ends


def tile_units(unit_count: int) -> int:
    """Return how many coding units a tile has where a row has ``unit_count``: all tiles of a row are equally long.

    It is all of them where the number has no useful divisor, as a prime number has none.
    """
    return next((width for width in _WIDTHS if unit_count % width == 0), unit_count)


def with_tiles(data: bytes, header: JpegHeader, units: int) -> bytes | None:
    """Return a JPEG file with the list of its tiles.

    Args:
        data: a baseline JPEG file with a restart marker after every ``units`` coding units.
        header: its header.
        units: a divisor of the number of coding units in a row.

    Returns:
        The file; None where its markers are not as promised, or the list is too long.
    """
    columns = -(-header.width // header.unit_width) // units
    rows = -(-header.height // header.unit_height)
    content = np.frombuffer(data, np.uint8)[header.scan_start :]
    after = content[1:]
    marks = np.flatnonzero((content[:-1] == 0xFF) & (after >= _RESTART_0) & (after <= _END_OF_IMAGE))
    if len(marks) != rows * columns or after[marks[-1]] != _END_OF_IMAGE:
        return None
    # Without the two bytes of each marker.
    lengths = np.diff(marks, prepend=-2) - 2
    kind = ">u2" if lengths.max() <= 0xFFFF else ">u4"
    body = lengths.astype(kind).tobytes()
    length = _LENGTHS_AT - 4 + len(body)
    if length > _MOST_SEGMENT_BYTES:
        return None
    head = _HEAD.pack(units, columns, rows, int(kind[2]))
    return b"".join([data[:2], b"\xff\xe9", length.to_bytes(2), TILE_INDEX_NAME, head, body, data[2:]])


def cut(data: bytes, header: JpegHeader, box: tuple[int, int, int, int]) -> tuple[bytes, int, int]:
    """Cut the tiles that a box touches out of a tiled file.

    Args:
        data: a tiled file.
        header: its header, with ``tiles_end``.
        box: x, y, width, height in pixels, within the image.

    Returns:
        A JPEG file, and by how much x and y of the box are smaller in it; the file itself where its list is damaged.
    """
    tiles = _read_tiles(data, header)
    if tiles is None:
        return data, 0, 0
    x, y, width, height = box
    first_column, end_column = _touched(x, width, tiles.width, header.width)
    first_row, end_row = _touched(y, height, tiles.height, header.height)
    left, top = first_column * tiles.width, first_row * tiles.height
    right, bottom = min(end_column * tiles.width, header.width), min(end_row * tiles.height, header.height)
    # Height and width stand behind the marker, the length and the precision.
    frame = header.frame_start + 5
    size = struct.pack(">HH", bottom - top, right - left)
    head = b"".join([b"\xff\xd8", data[header.tiles_end : frame], size, data[frame + 4 : header.scan_start]])
    starts = tiles.starts[:-1].reshape(-1, tiles.columns)[first_row:end_row, first_column:end_column]
    ends = tiles.starts[1:].reshape(-1, tiles.columns)[first_row:end_row, first_column:end_column]
    rows = [data[start:end] for start, end in zip(starts[:, 0].tolist(), ends[:, -1].tolist(), strict=True)]
    result = bytearray().join([head, *rows])
    markers = np.cumsum(ends - starts) + (len(head) - 1)  # the second byte of each
    # Restart markers count modulo 8 (ITU-T T.81, B.2.1), and the first tile may have had any number.
    np.frombuffer(result, np.uint8)[markers] = _RESTART_MARKERS[np.arange(len(markers)) & 7]
    result[-1] = _END_OF_IMAGE  # in place of the restart marker behind the last tile
    return bytes(result), left, top


def _touched(start: int, length: int, tile: int, end: int) -> tuple[int, int]:
    """Return the first tile along one axis that is needed, and the one behind the last."""
    return max(start - _CONTEXT, 0) // tile, -(-min(start + length + _CONTEXT, end) // tile)


def _read_tiles(data: bytes, header: JpegHeader) -> _Tiles | None:
    """Return where the tiles lie; None where the list does not fit the file."""
    units, columns, rows, length_bytes = _HEAD.unpack_from(data, _LENGTHS_AT - _HEAD.size)
    width, height = units * header.unit_width, header.unit_height
    if (
        header.tiles_end - _LENGTHS_AT != rows * columns * length_bytes
        or length_bytes not in (2, 4)
        or (columns - 1) * width >= header.width
        or columns * width < header.width
        or -(-header.height // height) != rows
    ):
        return None
    lengths = np.frombuffer(data, f">u{length_bytes}", rows * columns, _LENGTHS_AT)
    starts = np.empty(rows * columns + 1, np.int64)
    starts[0] = header.scan_start
    np.cumsum(lengths, out=starts[1:])
    starts[1:] += np.arange(1, rows * columns + 1) * 2 + header.scan_start
    return _Tiles(width, height, columns, starts) if starts[-1] <= len(data) else None
