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
