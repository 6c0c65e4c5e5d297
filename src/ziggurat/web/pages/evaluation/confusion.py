"""View model of a confusion matrix: shaded cells, most confused classes, and a PNG of the matrix."""

from __future__ import annotations

import math
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

_LEVELS: Final = 10
_PAIRS: Final = 50
_PICTURE_PX: Final = 640
_SHADES: Final = 127
_RIGHT_COLOUR: Final = (11, 95, 174)
_WRONG_COLOUR: Final = (192, 39, 29)


@dataclass(frozen=True)
class ConfusionRow:
    """What samples of one class were taken for.

    Args:
        number: of the class.
        name: of the class.
        total: samples.
        cells: count, shade (0 to 10), and share of the row, for each class.
    """

    number: int
    name: str
    total: int
    cells: list[tuple[int, int, float]]


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
    """Return the rows of a matrix.

    The shade of a correct cell is its share of the row; that of an error its share relative to the largest one, so
    that the worst confusion of a good model is as visible as that of a bad one.
    """
    shares = [[count / max(1, sum(row)) for count in row] for row in matrix]
    worst = max((share for at, row in enumerate(shares) for to, share in enumerate(row) if at != to), default=0.0)
    return [
        ConfusionRow(
            at,
            names[at],
            sum(row),
            [
                (count, _level(share if at == to else share / (worst or 1.0)), share)
                for to, (count, share) in enumerate(zip(row, shares[at], strict=True))
            ],
        )
        for at, row in enumerate(matrix)
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


def _level(share: float) -> int:
    """Return the shade of a share; the least error is visible."""
    return min(_LEVELS, max(1, math.ceil(round(share * _LEVELS, 6)))) if share else 0


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
