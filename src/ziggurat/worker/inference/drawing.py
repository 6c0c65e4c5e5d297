"""Thumbnails of layers: feature maps and filters side by side, in gray levels by value."""

from __future__ import annotations

import math
from typing import Final

import cv2
import numpy as np

from ziggurat.dataflow.images import encode_image

__all__ = ["draw_activation", "draw_weights"]

_TILES: Final = 64
_SIDE_PX: Final = 256
_SMALLEST_PX: Final = 96
_SMALLEST_TILE_PX: Final = 12
_GAP_PX: Final = 1
_FRAME: Final = 32
"""Gray level between tiles."""


def draw_activation(values: np.ndarray, *, as_colour: bool = False) -> bytes | None:
    """Return a PNG image of one sample's output of a layer; None where there is nothing to draw.

    Args:
        values: (H, W, C): the first 64 channels side by side; (H, W): one tile; (N): its numbers in rows, as square as
            may be. Other shapes are not drawn.
        as_colour: whether three channels are the colors of one image.
    """
    if not values.size or not np.isfinite(values).any():
        return None
    if values.ndim == 3 and as_colour and values.shape[2] == 3:
        return encode_image(_shrunken(_levels(values)), "png")
    if values.ndim == 3:
        return _tiled(np.moveaxis(values[:, :, :_TILES], 2, 0))
    if values.ndim == 2:
        return _tiled(values[None])
    return _tiled(_in_rows(values)[None]) if values.ndim == 1 else None


def draw_weights(values: np.ndarray) -> bytes | None:
    """Return a PNG image of an array of weights; None where there is nothing to draw.

    Args:
        values: (height, width, inputs, outputs) of a convolution: 64 filters side by side; (rows, columns): one tile;
            (N): as for an activation. Other shapes are not drawn.
    """
    if values.ndim != 4:
        return draw_activation(values) if values.ndim < 3 else None
    if not values.size or not np.isfinite(values).any():
        return None
    filters = values.transpose(3, 2, 0, 1).reshape(-1, *values.shape[:2])
    return _tiled(filters[:_TILES])


def _tiled(tiles: np.ndarray) -> bytes:
    """Return an image of (N, H, W) numbers."""
    levels = _levels(tiles)
    columns = math.ceil(math.sqrt(len(levels)))
    rows = math.ceil(len(levels) / columns)
    drawn = [
        _enlarged(_shrunken(tile, _SIDE_PX // columns), max(_SMALLEST_TILE_PX, _SMALLEST_PX // columns))
        for tile in levels
    ]
    height, width = drawn[0].shape
    sheet = np.full((rows * (height + _GAP_PX) - _GAP_PX, columns * (width + _GAP_PX) - _GAP_PX), _FRAME, np.uint8)
    for number, tile in enumerate(drawn):
        top, left = (number // columns) * (height + _GAP_PX), (number % columns) * (width + _GAP_PX)
        sheet[top : top + height, left : left + width] = tile
    return encode_image(sheet, "png")


def _levels(values: np.ndarray) -> np.ndarray:
    """Return numbers as uint8, from the least of all to the largest; what is not finite is black."""
    numbers = np.asarray(values, np.float64)
    finite = np.isfinite(numbers)
    least, largest = numbers[finite].min(), numbers[finite].max()
    # Halved first: the span of the largest floats is no float.
    span = (largest / 2 - least / 2) or 1.0
    shares = np.where(finite, (numbers / 2 - least / 2) / span, 0.0)
    return np.rint(np.nan_to_num(shares) * 255).astype(np.uint8)


def _shrunken(picture: np.ndarray, side_px: int = _SIDE_PX) -> np.ndarray:
    height, width = picture.shape[:2]
    share = min(1.0, max(1, side_px) / max(height, width))
    if share == 1.0:
        return picture
    size = (max(1, round(width * share)), max(1, round(height * share)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)


def _enlarged(tile: np.ndarray, side_px: int) -> np.ndarray:
    factor = math.ceil(side_px / max(tile.shape))
    return tile.repeat(factor, axis=0).repeat(factor, axis=1) if factor > 1 else tile


def _in_rows(values: np.ndarray) -> np.ndarray:
    """Return (N) numbers as rows of a rectangle, the rest of the last row not finite."""
    columns = math.ceil(math.sqrt(len(values)))
    rows = math.ceil(len(values) / columns)
    filled = np.full(rows * columns, np.nan)
    filled[: len(values)] = values
    return filled.reshape(rows, columns)
