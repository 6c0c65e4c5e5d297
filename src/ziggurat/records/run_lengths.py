"""COCO run-length masks: the lengths of runs of 0 and 1, column by column, as a list or as a short text.

The text holds each length in groups of five bits, the lowest first. A group is a character from ``0`` (48) on; bit 32
marks that another group follows, and bit 16 of the last group marks a negative number. From the fourth length on, the
text holds the difference to the length two positions before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

__all__ = ["mask_area", "mask_outlines", "mask_part", "mask_pixels", "read_run_lengths", "run_lengths"]

LARGEST_MASK_PX: Final = 1 << 28
"""No mask in run lengths is larger."""

_FIRST: Final = 48
_GROUP_BITS: Final = 5
_MOST_GROUPS: Final = 7
_MORE, _SIGN, _LOW = 32, 16, 31
_PLAIN: Final = 3
"""Lengths at the beginning that are written as they are."""


def read_run_lengths(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return run lengths in the form in which labels hold them: ``size`` (height, width) and ``counts``, a text.

    Args:
        value: ``size``, and ``counts`` as a list or as a text, from an untrusted file.

    Returns:
        None where the lengths are none, or do not add up to the size.
    """
    parsed = _parsed(value)
    if parsed is None:
        return None
    height, width, lengths = parsed
    counts = value["counts"]
    return {"size": [height, width], "counts": counts if isinstance(counts, str) else _text(lengths.tolist())}


def run_lengths(mask: np.ndarray) -> dict[str, Any]:
    """Return the run lengths of a mask, (H, W), in the form in which labels hold them; what is not 0 is in it."""
    height, width = mask.shape
    flat = (np.asarray(mask) != 0).ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    ends = np.concatenate([changes, [flat.size]])
    lengths = np.diff(ends, prepend=0).tolist()
    if flat.size and flat[0]:
        lengths.insert(0, 0)
    return {"size": [int(height), int(width)], "counts": _text(lengths)}


def mask_pixels(content: Mapping[str, Any]) -> np.ndarray:
    """Return a mask, (H, W) uint8 of 0 and 1.

    Raises:
        ValueError: where the run lengths do not add up to their size.
    """
    height, width, lengths = _checked(content)
    return _runs(lengths, height * width).reshape(width, height).T


def mask_area(content: Mapping[str, Any]) -> int:
    """Return how many pixels are in a mask.

    Raises:
        ValueError: as ``mask_pixels``.
    """
    return int(_checked(content)[2][1::2].sum())


def mask_part(content: Mapping[str, Any]) -> tuple[np.ndarray, int, int]:
    """Return the smallest part of a mask, (h, w) uint8, that has all of it, and where its left and upper side are.

    Raises:
        ValueError: as ``mask_pixels``.
    """
    height, _width, lengths = _checked(content)
    ends = np.cumsum(lengths)
    filled = np.flatnonzero(lengths[1::2]) * 2 + 1
    if not filled.size:
        return np.zeros((0, 0), np.uint8), 0, 0
    first, last = int(ends[filled[0] - 1]) // height, (int(ends[filled[-1]]) - 1) // height
    start, stop = first * height, (last + 1) * height
    inside = np.diff(np.clip(ends, start, stop), prepend=start)
    columns = _runs(inside, stop - start).reshape(last + 1 - first, height)
    rows = np.flatnonzero(columns.any(axis=0))
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    return columns[:, top:bottom].T, first, top


def mask_outlines(content: Mapping[str, Any]) -> list[tuple[np.ndarray, bool]]:
    """Return the outlines of a mask along the sides of its pixels, which is exact.

    Returns:
        Each outline: its corners, (n, 2) of x and y, and whether it is that of a hole. Pixels that touch at a corner
        only belong to outlines of their own.

    Raises:
        ValueError: as ``mask_pixels``.
    """
    part, left, top = mask_part(content)
    return [(points + (left, top), is_hole) for points, is_hole in _outlines(part)] if part.size else []


def _checked(content: Mapping[str, Any]) -> tuple[int, int, np.ndarray]:
    parsed = _parsed(content)
    if parsed is None:
        raise ValueError("The run lengths of a mask add up to its size.")
    return parsed


def _parsed(value: Mapping[str, Any]) -> tuple[int, int, np.ndarray] | None:
    """Return height, width and lengths; None where they do not belong together."""
    size, counts = value.get("size"), value.get("counts")
    if not isinstance(size, list | tuple) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
        return None
    pixels = size[0] * size[1]
    lengths = None
    if pixels <= LARGEST_MASK_PX and isinstance(counts, str):
        lengths = _lengths(counts)
    elif pixels <= LARGEST_MASK_PX and isinstance(counts, list):
        is_good = all(type(each) is int and 0 <= each <= pixels for each in counts)
        lengths = np.array(counts, np.int64) if is_good else None
    return None if lengths is None or int(lengths.sum()) != pixels else (size[0], size[1], lengths)


def _lengths(text: str) -> np.ndarray | None:
    """Return the lengths in a text; None where it is none."""
    if not text.isascii():
        return None
    groups = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) - _FIRST
    if groups.size and (groups.min() < 0 or groups.max() > _MORE + _LOW or groups[-1] & _MORE):
        return None
    lasts = np.flatnonzero(groups & _MORE == 0)
    firsts = np.concatenate([[0], lasts[:-1] + 1]) if lasts.size else lasts
    sizes = lasts - firsts + 1
    if not sizes.size or sizes.max() > _MOST_GROUPS:
        return None if sizes.size else np.zeros(0, np.int64)
    places = np.arange(groups.size) - np.repeat(firsts, sizes)
    written = np.add.reduceat((groups & _LOW) << (_GROUP_BITS * places), firsts)
    written -= (groups[lasts] & _SIGN != 0).astype(np.int64) << (_GROUP_BITS * sizes)
    lengths = written
    for start in (1, 2):  # both chains begin with a length as it is
        lengths[start::2] = np.cumsum(written[start::2])
    is_good = lengths.min() >= 0 and lengths.max() <= LARGEST_MASK_PX
    return lengths if is_good else None


def _text(lengths: Sequence[int]) -> str:
    return "".join(
        _written(length if place < _PLAIN else length - lengths[place - 2]) for place, length in enumerate(lengths)
    )


def _written(number: int) -> str:
    groups = []
    while not -_SIGN <= number < _SIGN:
        groups.append(chr(_FIRST + _MORE + (number & _LOW)))
        number >>= _GROUP_BITS
    return "".join(groups) + chr(_FIRST + (number & _LOW))


def _runs(lengths: np.ndarray, pixels: int) -> np.ndarray:
    values = np.arange(len(lengths), dtype=np.int64) % 2
    found = np.repeat(values.astype(np.uint8), lengths)
    assert found.size == pixels
    return found


# ---- outlines


def _outlines(mask: np.ndarray) -> list[tuple[np.ndarray, bool]]:
    """Follow the corners: sides go from a corner to the next one in its row, then to the next one in its column."""
    corners = _Corners(np.pad(mask, 1))
    points, filled = corners.points.tolist(), corners.is_filled.tolist()
    in_row, in_column = corners.partners(1, 0, corners.goes_right), corners.partners(0, 1, corners.goes_down)
    seen = [False] * len(points)
    found = []
    for start in range(len(points)):
        if seen[start]:
            continue
        outline, at = [], start
        while not seen[at]:
            across = in_row[at]
            seen[at] = seen[across] = True
            outline += [points[at], points[across]]
            at = in_column[across]
        found.append((np.array(outline) - 1, not filled[start]))
    return found


class _Corners:
    """The corners of the sides of a mask, from the upper left one, row by row; where four sides meet, there are two.

    Args:
        mask: with a frame of zeros.
    """

    def __init__(self, mask: np.ndarray) -> None:
        above_left, above, left, here = mask[:-1, :-1], mask[:-1, 1:], mask[1:, :-1], mask[1:, 1:]
        right_side, down_side = above != here, left != here
        meets = (above_left == here) & (above == left) & (above != here)
        is_corner = (right_side != (above_left != left)) | meets
        y, x = np.nonzero(is_corner)
        doubled = np.repeat(np.arange(len(x)), 1 + meets[y, x])
        is_second = np.diff(doubled, prepend=-1) == 0
        y, x = y[doubled], x[doubled]
        is_meeting, is_here = meets[y, x], here[y, x] != 0
        self.points = np.stack([x + 1, y + 1], axis=1)
        self.is_filled = is_here
        # Of two corners at one place, the first has the side to the left and the second that to the right.
        self.goes_right = np.where(is_meeting, is_second, right_side[y, x])
        self.goes_down = np.where(is_meeting, is_second == is_here, down_side[y, x])

    def partners(self, first: int, then: int, goes_on: np.ndarray) -> list[int]:
        """Return the corner at the other end of each corner's side.

        Args:
            first: coordinate that both have.
            then: coordinate along the side.
            goes_on: whether the side begins at a corner, not ends.
        """
        order = np.lexsort((goes_on, self.points[:, then], self.points[:, first]))
        found = np.empty(len(order), np.int64)
        found[order[0::2]], found[order[1::2]] = order[1::2], order[0::2]
        return found.tolist()
