"""Grad-CAM heat maps: how strongly each region of an image supports a class, and their rendering."""

from __future__ import annotations

import math
from typing import Final

import cv2
import numpy as np

from ziggurat.dataflow.images import encode_image

__all__ = ["HEAT_COLOURS", "coloured", "draw_heat", "draw_overlay", "heat_of", "resized"]

HEAT_COLOURS: Final = (
    (18, 8, 54),
    (70, 16, 104),
    (122, 30, 108),
    (172, 46, 92),
    (214, 74, 62),
    (240, 118, 32),
    (250, 170, 36),
    (247, 218, 98),
    (253, 253, 190),
)
"""RGB from no heat to the most, at even distances. Each is lighter than the one before, so that also who tells no red
from green, and a print without colors, keeps the order."""

_LEAST_PX: Final = 256
_MOST_PX: Final = 512
_OPACITY: Final = 0.8
"""Of the hottest place; a place without heat shows the bare image."""


def heat_of(maps: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the heat (H, W) float64 from 0 to 1, and the largest value that it was divided by; 0 where there is none.

    Each map counts by the mean of its gradients; what then speaks against the class is no heat (Selvaraju et al., 2017,
    equations 1 and 2).

    Args:
        maps: of a layer, (H, W, C).
        gradients: of the score of a class by the maps, of the same shape.
    """
    weights = np.asarray(gradients, np.float64).mean(axis=(0, 1))
    heat = np.maximum(np.asarray(maps, np.float64) @ weights, 0.0)
    largest = float(heat.max(initial=0.0))
    return (heat / largest if largest > 0 else heat), largest


def resized(heat: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return heat for each pixel of an image.

    Args:
        heat: (H, W) from 0 to 1.
        size: (height, width) of the image.
    """
    height, width = size
    return np.clip(cv2.resize(heat, (width, height), interpolation=cv2.INTER_LINEAR), 0.0, 1.0)


def coloured(heat: np.ndarray) -> np.ndarray:
    """Return heat from 0 to 1 as RGB, (…, 3) uint8."""
    places = np.linspace(0, 1, len(HEAT_COLOURS))
    parts = [np.interp(heat, places, [colour[part] for colour in HEAT_COLOURS]) for part in range(3)]
    return np.rint(np.stack(parts, axis=-1)).astype(np.uint8)


def draw_overlay(picture: np.ndarray, heat: np.ndarray) -> bytes:
    """Return a PNG: an image in gray, and over it the heat in color, the more opaque the hotter.

    Args:
        picture: (H, W, 1 or 3) uint8.
        heat: of a layer, (h, w) from 0 to 1.
    """
    grey = _shown(picture.mean(axis=2, dtype=np.float32))
    shares = resized(heat, (grey.shape[0], grey.shape[1]))
    opacity = _OPACITY * np.sqrt(shares)[:, :, None]
    mixed = grey[:, :, None] * (1 - opacity) + coloured(shares) * opacity
    return encode_image(np.rint(mixed).astype(np.uint8), "png")


def draw_heat(heat: np.ndarray, size: tuple[int, int]) -> bytes:
    """Return a PNG of the heat alone, a square for each place of the layer.

    Args:
        heat: of a layer, (h, w) from 0 to 1.
        size: (height, width) of the image that it belongs to.
    """
    height, width = _shown(np.zeros(size, np.float32)).shape
    return encode_image(cv2.resize(coloured(heat), (width, height), interpolation=cv2.INTER_NEAREST), "png")


def _shown(picture: np.ndarray) -> np.ndarray:
    """Return (H, W) numbers as large as they are looked at: whole pixels larger, or smaller by their means."""
    longest = max(picture.shape)
    factor = math.ceil(_LEAST_PX / longest)
    if factor > 1:
        return picture.repeat(factor, axis=0).repeat(factor, axis=1)
    share = min(1.0, _MOST_PX / longest)
    size = (max(1, round(picture.shape[1] * share)), max(1, round(picture.shape[0] * share)))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA) if share < 1 else picture
