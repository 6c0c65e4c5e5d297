"""EXIF orientation: transforms of a box before decoding and of the pixels afterwards."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

__all__ = ["is_turned", "stored_box", "turn_into"]

# Orientation → (axes exchanged, rows reversed, columns reversed): what leads from an upright place to the stored one.
_TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, True, False),
    7: (True, True, True),
    8: (True, False, True),
}


def is_turned(orientation: int) -> bool:
    """Tell whether width and height are exchanged between the stored and the upright image."""
    return _TURNS[orientation][0]


def stored_box(box: list[int], orientation: int, size: tuple[int, int]) -> list[int]:
    """Return where a box of the upright image lies in the stored one.

    Args:
        box: x, y, width, height in the upright image.
        orientation: from 1 to 8, as in EXIF.
        size: width and height of the stored image.
    """
    exchanged, rows_reversed, columns_reversed = _TURNS[orientation]
    x, y, width, height = (box[1], box[0], box[3], box[2]) if exchanged else box
    if columns_reversed:
        x = size[0] - x - width
    if rows_reversed:
        y = size[1] - y - height
    return [x, y, width, height]


def turn_into(stored: np.ndarray, target: np.ndarray, orientation: int, *, flip: bool) -> None:
    """Turn a stored image upright, and write it.

    Args:
        stored: (H, W, 3) uint8.
        target: (H, W, 3) uint8, or (W, H, 3) where the axes are exchanged.
        orientation: from 1 to 8, as in EXIF.
        flip: mirror the upright image left and right.
    """
    exchanged, rows_reversed, columns_reversed = _TURNS[orientation]
    picture: Any = stored
    if rows_reversed and columns_reversed:
        picture = cv2.flip(picture, -1)
    elif rows_reversed or columns_reversed:
        picture = cv2.flip(picture, 0 if rows_reversed else 1)
    if exchanged:
        picture = cv2.transpose(picture)
    np.copyto(target, cv2.flip(picture, 1) if flip else picture)
