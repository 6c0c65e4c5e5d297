"""Layout of the targets and outputs of object detection, as NumPy and every framework read them.

The target of an image is DIGITS's array, 1 × (most + 1) × 16 float32: a header row, and one row for each object. Boxes
are in pixels of the network's input.

=======  ====================================================================================================
column   header row
=======  ====================================================================================================
0        how many objects follow
1        16, the length of a row
2, 3     height and width of the original image in px
4, 5     scale of y and of x: px of the input for one px of the original
6, 7     top and left of the original's upper left corner in the input, in px; negative where it is cut off
8        how many objects a crop or an augmentation removed
others   0
=======  ====================================================================================================

=======  ====================================================================================================
column   row of an object
=======  ====================================================================================================
0 to 3   left, top, width, height in px
4        KITTI's ``alpha``, else 0
5        number of the class; -1 where it has none
6        0 in DIGITS; here 1 for a crowd and 2 for what is to be ignored or is difficult: neither counts
7 to 15  KITTI's rotation, truncation, occlusion, size and place (``rotation_y, truncated, occluded, length, width,
         height, locx, locy, locz``), else 0
=======  ====================================================================================================

The output of a network is (N, K, 4 + classes) float32: left, top, right and bottom in px of the input, and a score from
0 to 1 for each class. A row whose scores are all 0 or less is no detection. K is fixed; the rows are in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

__all__ = [
    "CLASS",
    "COUNT",
    "CROWD",
    "DROPPED",
    "IGNORED",
    "ORIGINAL_SIZE",
    "PLACE",
    "ROW_LENGTH",
    "SCALE",
    "STATE",
    "Targets",
    "corners_of_rows",
    "kept_rows",
    "moved_rows",
    "targets_of",
]

ROW_LENGTH: Final = 16
COUNT: Final = 0
ORIGINAL_SIZE: Final = slice(2, 4)
SCALE: Final = slice(4, 6)
PLACE: Final = slice(6, 8)
DROPPED: Final = 8
CLASS: Final = 5
STATE: Final = 6
CROWD: Final = 1
IGNORED: Final = 2

_LEAST_VISIBLE: Final = 0.25
"""Share of an object's area that must stay in the image, else it is no object to find any more."""


@dataclass(frozen=True)
class Targets:
    """The objects of a batch, padded to the same number.

    Args:
        boxes: (N, M, 4) left, top, right, bottom in px of the input; zeros in padding.
        classes: (N, M) int64; -1 where there is none, and in padding.
        is_object: (N, M) bool, True where a row is an object that counts.
        is_ignored: (N, M) bool, True where a row is a crowd, ignored or difficult.
    """

    boxes: np.ndarray
    classes: np.ndarray
    is_object: np.ndarray
    is_ignored: np.ndarray


def targets_of(y: np.ndarray) -> Targets:
    """Return the objects of a batch of targets.

    Args:
        y: (N, 1, M + 1, 16), see the module.
    """
    rows = y[:, 0, 1:]
    is_there = np.arange(rows.shape[1]) < y[:, 0, :1, COUNT]
    corners = np.concatenate([rows[..., :2], rows[..., :2] + rows[..., 2:4]], axis=-1)
    is_ignored = is_there & ((rows[..., STATE] > 0) | (rows[..., CLASS] < 0))
    return Targets(
        boxes=np.where(is_there[..., None], corners, 0).astype(np.float32),
        classes=np.where(is_there, rows[..., CLASS], -1).astype(np.int64),
        is_object=is_there & ~is_ignored,
        is_ignored=is_ignored,
    )


def corners_of_rows(rows: np.ndarray) -> np.ndarray:
    """Return the boxes of one image, (objects, 4) left, top, right, bottom.

    Args:
        rows: (M + 1, 16), the header row first.
    """
    body = rows[1 : 1 + int(rows[0, COUNT])]
    return np.concatenate([body[:, :2], body[:, :2] + body[:, 2:4]], axis=1)


def moved_rows(rows: np.ndarray, corners: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Return the objects of one image after their boxes were moved, clipped to the image.

    Args:
        rows: (M + 1, 16), the header row first.
        corners: (objects, 4) of ``corners_of_rows``, moved.
        size: (height, width) of the image in px.
    """
    moved = rows.copy()
    body = moved[1 : 1 + int(rows[0, COUNT])]
    body[:, :2], body[:, 2:4] = corners[:, :2], corners[:, 2:] - corners[:, :2]
    return kept_rows(moved, size, len(rows) - 1)


def kept_rows(rows: np.ndarray, size: Sequence[int], most: int) -> np.ndarray:
    """Return objects clipped to an image, (most + 1, 16), without those of which too little is left.

    An object stays if at least a quarter of its area does, a region to ignore if anything of it does. Those beyond
    ``most`` go, too. All that go are counted in the header row.

    Args:
        rows: (M + 1, 16), the header row first.
        size: (height, width) of the image in px.
        most: rows for objects in the result.
    """
    count = int(rows[0, COUNT])
    corners = corners_of_rows(rows).astype(np.float64)
    clipped = np.clip(corners, 0, np.array([size[1], size[0], size[1], size[0]]))
    before, after = (np.prod(np.maximum(each[:, 2:] - each[:, :2], 0), axis=1) for each in (corners, clipped))
    body = rows[1 : 1 + count]
    is_ignored = (body[:, STATE] > 0) | (body[:, CLASS] < 0)
    # One without an area is ignored already, and stays to be counted.
    stays = np.where(is_ignored, (after > 0) | (before == 0), after >= _LEAST_VISIBLE * before)
    kept = np.flatnonzero(stays)[:most]
    found = np.zeros((most + 1, rows.shape[1]), np.float32)
    found[0] = rows[0]
    found[0, COUNT], found[0, DROPPED] = len(kept), rows[0, DROPPED] + count - len(kept)
    found[1 : 1 + len(kept)] = body[kept]
    found[1 : 1 + len(kept), :2] = clipped[kept, :2]
    found[1 : 1 + len(kept), 2:4] = clipped[kept, 2:] - clipped[kept, :2]
    return found
