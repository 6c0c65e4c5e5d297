"""View model of a confusion matrix: shaded cells, most confused classes, and a PNG of the matrix."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

__all__ = [
    "MOST_CELLS_ACROSS",
    "ConfusedPair",
    "ConfusionRow",
    "cell_at",
    "cell_side_px",
    "confused_pairs",
    "confusion_picture",
    "confusion_rows",
]

MOST_CELLS_ACROSS: Final = 40
"""A matrix of more classes is shown as an image."""

_LEVELS: Final = 9
_PAIRS: Final = 50
_PICTURE_PX: Final = 640
_SHADES: Final = 127
_RIGHT_COLOUR: Final = (0, 118, 90)
_WRONG_COLOUR: Final = (180, 73, 10)


@dataclass(frozen=True)
class ConfusionRow:
    """What samples of one class were taken for.

    Args:
        number: of the class.
        name: of the class.
        total: samples.
        cells: count and shade (0 to 9) for each class.
    """

    number: int
    name: str
    total: int
    cells: list[tuple[int, int]]


@dataclass(frozen=True)
class ConfusedPair:
    """Two classes, of which one was taken for the other.

    Args:
        label: class number of the truth.
        label_name: its name.
        predicted: class number that was said.
        predicted_name: its name.
        count: samples.
        share: of the samples of the truth.
    """

    label: int
    label_name: str
    predicted: int
    predicted_name: str
    count: int
    share: float


def confusion_rows(matrix: Sequence[Sequence[int]], names: Sequence[str]) -> list[ConfusionRow]:
    """Return the rows of a matrix; the shade of a cell goes by its share of the row."""
    return [
        ConfusionRow(number, names[number], total, [(count, _level(count, total)) for count in row])
        for number, (row, total) in enumerate((row, sum(row)) for row in matrix)
    ]


def confused_pairs(matrix: Sequence[Sequence[int]], names: Sequence[str]) -> list[ConfusedPair]:
    """Return the pairs of classes that were confused most often."""
    if not matrix:
        return []
    counts = np.array(matrix, np.int64)
    totals = counts.sum(axis=1)
    np.fill_diagonal(counts, 0)
    places = np.argsort(-counts, axis=None, kind="stable")[:_PAIRS]
    found = [divmod(int(place), counts.shape[1]) for place in places]
    return [
        ConfusedPair(
            label, names[label], said, names[said], int(counts[label, said]), float(counts[label, said] / totals[label])
        )
        for label, said in found
        if counts[label, said]
    ]


def confusion_picture(matrix: Sequence[Sequence[int]]) -> bytes:
    """Return a matrix as PNG: a square for each cell, the stronger the larger its share of the row.

    What is not colored is transparent, so that it fits light and dark pages.
    """
    counts = np.array(matrix, np.float64)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    shades = np.ceil(np.sqrt(shares) * _SHADES).astype(np.uint8)
    shades[np.diag_indices(len(shades))] += np.uint8(_SHADES + 1)
    side = cell_side_px(len(shades))
    return _indexed_png(np.kron(shades, np.ones((side, side), np.uint8)))


def cell_side_px(classes: int) -> int:
    """Return how large the square of a cell is in the image."""
    return max(1, _PICTURE_PX // max(1, classes))


def cell_at(text: str, classes: int) -> tuple[int, int] | None:
    """Return truth and prediction of the cell at a place of the image, ``x,y``; None where there is none."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < len("100000") for part in parts):
        return None
    said, label = (int(part) // cell_side_px(classes) for part in parts)
    return (label, said) if label < classes and said < classes else None


def _level(count: int, total: int) -> int:
    return -(-count * _LEVELS // total) if count else 0


def _indexed_png(levels: np.ndarray) -> bytes:
    """Return an image of numbers below 256 as PNG: 0 to 127 for what is wrong, from 128 on for what is right."""
    height, width = levels.shape
    colours = bytes(_WRONG_COLOUR) * (_SHADES + 1) + bytes(_RIGHT_COLOUR) * (_SHADES + 1)
    opacities = bytes(round(255 * shade / _SHADES) for shade in range(_SHADES + 1)) * 2
    lines = np.hstack([np.zeros((height, 1), np.uint8), levels]).tobytes()
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colours),
        (b"tRNS", opacities),
        (b"IDAT", zlib.compress(lines, 6)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
