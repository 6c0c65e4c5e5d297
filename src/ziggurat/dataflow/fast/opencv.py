"""The fallback engine: OpenCV decodes the whole file, at reduced size where possible, and resizes the box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

__all__ = ["OpenCVEngine", "resize_into"]

_REDUCED = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}


class OpenCVEngine:
    """Decodes file by file; OpenCV works without the GIL."""

    name = "opencv"
    version = f"OpenCV {cv2.__version__}"

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode boxes into ``out``; see ``Engine.decode``."""
        return [_decode(data, plan, out) for data, plan in zip(files, plans.tolist(), strict=True)]


def resize_into(box: np.ndarray, target: np.ndarray, *, flip: bool, swap: bool = False) -> None:
    """Resize ``box`` bilinearly into ``target``.

    Args:
        box: (H, W, 3) uint8; its rows may lie apart from each other.
        target: (height, width, 3) uint8, C-contiguous.
        flip: mirror left and right.
        swap: exchange the first and the last channel (BGR and RGB).
    """
    height, width = target.shape[:2]
    result: Any = cv2.resize(box, (width, height), dst=target, interpolation=cv2.INTER_LINEAR)
    if swap:
        result = cv2.cvtColor(result, cv2.COLOR_BGR2RGB, dst=target)
    if flip:
        result = cv2.flip(result, 1, dst=target)
    if result is not target:
        np.copyto(target, result)


def _decode(data: bytes, plan: list[int], out: np.ndarray) -> str:
    slot, x, y, width, height, d, flip = plan
    try:
        image: Any = cv2.imdecode(np.frombuffer(data, np.uint8), _REDUCED[d] | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        return str(error)
    if image is None:
        return "OpenCV cannot decode it"
    box = image[y // d : -(-(y + height) // d), x // d : -(-(x + width) // d)]
    if box.shape[:2] != (-(-height // d), -(-width // d)):
        return "the box does not lie in the image"
    resize_into(box, out[slot], flip=bool(flip), swap=True)
    return ""
