"""Tiled JPEG files: complete JPEG files with an index of their tiles, so that a region is cut out without decoding.

A tile is a stretch of a row of coding units between two restart markers (ITU-T T.81, F.2.1.3.1): it can be decoded
without the tiles before it. The first segment of a tiled file lists the length of every tile. ``cut()`` copies the
header and the tiles that a box touches into a new, smaller JPEG file, which any decoder reads.

The segment (marker APP9) holds, all big-endian: a name, units per tile (uint16), tiles per row (uint16), rows of
tiles (uint16), bytes per length (uint16: 2 or 4), and the lengths in bytes, excluding restart markers.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ziggurat.dataflow.fast.header import TILE_INDEX_NAME, JpegHeader

__all__ = ["cut", "tile_units", "with_tiles"]

_HEAD = struct.Struct(">HHHH")
_LENGTHS_AT = 2 + 4 + len(TILE_INDEX_NAME) + _HEAD.size
_MOST_SEGMENT_BYTES = 0xFFFF
_RESTART_0, _END_OF_IMAGE = 0xD0, 0xD9
_RESTART_MARKERS = np.arange(_RESTART_0, _RESTART_0 + 8, dtype=np.uint8)
_CONTEXT = 2  # pixels beside a box that the smooth upsampling of color looks at
_WIDTHS = (4, 5, 6, 3, 7, 8, 2)  # units in a tile, best first


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
    frame = header.frame_start + 5
    size = struct.pack(">HH", bottom - top, right - left)
    head = b"".join([b"\xff\xd8", data[header.tiles_end : frame], size, data[frame + 4 : header.scan_start]])
    starts = tiles.starts[:-1].reshape(-1, tiles.columns)[first_row:end_row, first_column:end_column]
    ends = tiles.starts[1:].reshape(-1, tiles.columns)[first_row:end_row, first_column:end_column]
    rows = [data[start:end] for start, end in zip(starts[:, 0].tolist(), ends[:, -1].tolist(), strict=True)]
    result = bytearray().join([head, *rows])
    markers = np.cumsum(ends - starts) + (len(head) - 1)  # the second byte of each
    np.frombuffer(result, np.uint8)[markers] = _RESTART_MARKERS[np.arange(len(markers)) & 7]
    result[-1] = _END_OF_IMAGE
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
