"""Resizing to a random size."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import positive, ranged
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.images import Array, ImageError
from ziggurat.dataflow.imgaug.resize import ResizeTransform
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.errors import UsageError

__all__ = ["RandomResize"]


class RandomResize(ImageAugmentor):
    """Scales to a random size, with a limit to the change of the aspect ratio.

    Args:
        xrange: (low, high) of the width: two ints are pixels, else ratios to the present width.
        yrange: (low, high) of the height, likewise; None: that of the width.
        minimum: (width, height) in pixels that are not undercut.
        aspect_ratio_thres: largest relative change of width / height; 0 keeps the ratio and ignores ``yrange``.
        interp: OpenCV's number of the interpolation.
    """

    def __init__(
        self,
        xrange: Sequence[float],
        yrange: Sequence[float] | None = None,
        minimum: Sequence[int] = (0, 0),
        aspect_ratio_thres: float = 0.15,
        interp: int = cv2.INTER_LINEAR,
    ) -> None:
        self.xrange = ranged(xrange, "xrange", least=0)
        self.yrange = self.xrange if yrange is None else ranged(yrange, "yrange", least=0)
        self.minimum = (int(minimum[0]), int(minimum[1]))
        self.aspect_ratio_thres = positive(aspect_ratio_thres, "aspect_ratio_thres")
        self.interp = interp
        self._in_pixels = _are_ints(xrange)
        if yrange is not None and _are_ints(yrange) != self._in_pixels:
            raise UsageError(
                "`xrange` and `yrange` are both in pixels (two ints) or both ratios (floats).",
                received=f"xrange={tuple(xrange)}, yrange={tuple(yrange)}",
                advice="Write 1.0 instead of 1 where a ratio is meant.",
            )

    def get_transform(self, img: Array) -> Transform:
        h, w = img.shape[:2]
        width, height = self._drawn(h, w)
        new_w = max(1, int(max(width, self.minimum[0]) + 0.5))
        new_h = max(1, int(max(height, self.minimum[1]) + 0.5))
        return ResizeTransform(h, w, new_h, new_w, self.interp)

    def _drawn(self, h: int, w: int) -> tuple[float, float]:
        """Draw a width among those that have a permitted height, and then such a height."""
        unit_x, unit_y = (1, 1) if self._in_pixels else (w, h)
        widths = [limit * unit_x for limit in self.xrange]
        heights = [limit * unit_y for limit in self.yrange]
        change = self.aspect_ratio_thres
        if change == 0:
            width = self._rand_range(*widths)
            return width, width * h / w
        flattest, steepest = h / w / (1 + change), h / w / max(1 - change, 1e-9)  # heights for a width of 1
        low, high = max(widths[0], heights[0] / steepest), min(widths[1], heights[1] / flattest)
        if low > high:
            raise ImageError(
                "`RandomResize` needs a size in its ranges that keeps the aspect ratio within its limit.",
                received=f"an image of {h} x {w} (height x width) for {self}",
                advice="Widen `xrange` or `yrange`, or raise `aspect_ratio_thres`.",
            )
        width = self._rand_range(low, high)
        return width, self._rand_range(max(heights[0], width * flattest), min(heights[1], width * steepest))


def _are_ints(values: Sequence[float]) -> bool:
    return all(isinstance(value, int | np.integer) for value in values)
