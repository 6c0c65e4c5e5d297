"""Small masks that predictions of single images found, and how well they fit the true ones."""

from __future__ import annotations

import base64
import binascii
import functools

import cv2
import numpy as np

from ziggurat.tasks.segmentation_metrics import sample_iou

__all__ = ["mask_bytes", "mask_overlap"]

_CLEAR = 255


def mask_bytes(text: object) -> bytes:
    """Return the PNG of a mask that a job keeps as text; empty where it is none."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


@functools.lru_cache(maxsize=8192)
def mask_overlap(actual: str, predicted: str) -> float | None:
    """Return the mean IoU of two masks of the same image, as text; None where one is damaged, or no pixel counts.

    Args:
        actual: in the colors of the classes; what is clear does not count.
        predicted: in the same colors.
    """
    first, second = (_pixels(text) for text in (actual, predicted))
    if first is None or second is None or first.shape != second.shape:
        return None
    colors, numbers = np.unique(np.stack([first, second]), return_inverse=True)
    numbers = numbers.reshape(2, 1, *first.shape)
    clear = np.flatnonzero(colors == _CLEAR << 24)
    iou, _ = sample_iou(numbers[1], numbers[0], len(colors), int(clear[0]) if len(clear) else None)
    return None if np.isnan(iou[0]) else float(iou[0])


def _pixels(text: str) -> np.ndarray | None:
    """Return a number for the color of each pixel, (H, W) int64; that of all clear ones is the same."""
    content = mask_bytes(text)
    image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED) if content else None
    if image is None or image.ndim != 3 or image.dtype != np.uint8:
        return None
    pixels = image.astype(np.int64)
    numbers = pixels[..., 0] | pixels[..., 1] << 8 | pixels[..., 2] << 16
    return numbers if image.shape[2] == 3 else np.where(pixels[..., 3] > 0, numbers, _CLEAR << 24)
