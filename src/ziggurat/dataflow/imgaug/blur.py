"""Gaussian blur."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import cv2

from ziggurat.dataflow.imgaug.arguments import ranged
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.images import Array, like
from ziggurat.errors import UsageError

__all__ = ["BlurWindow", "GaussianBlur"]


class BlurWindow(NamedTuple):
    """What ``GaussianBlur`` draws.

    Args:
        size: (width, height) of the window in pixels, both odd.
        sigma: (horizontal, vertical) standard deviation in pixels; 0 lets OpenCV choose by the size.
    """

    size: tuple[int, int]
    sigma: tuple[float, float]


class GaussianBlur(PhotometricAugmentor):
    """Blurs with a normal window of a random size; a window of 1 changes nothing.

    Args:
        size_range: the window has ``2 * k + 1`` pixels, with k drawn from [low, high); or one number, ``(0, number)``.
        sigma_range: (least, most) standard deviation in pixels; 0 lets OpenCV choose by the window.
        symmetric: the same window and deviation in both directions.
        max_size: deprecated: ``size_range=(0, max_size)``.
    """

    def __init__(
        self,
        size_range: int | Sequence[int] = (0, 3),
        sigma_range: Sequence[float] = (0, 0),
        symmetric: bool = True,
        max_size: int | None = None,
    ) -> None:
        if max_size is not None:
            warnings.warn("`max_size` is deprecated. Use `size_range=(0, max_size)`.", DeprecationWarning, stacklevel=2)
            size_range = max_size
        low, high = ranged((0, size_range) if isinstance(size_range, int) else size_range, "size_range", least=0)
        if not high > low:
            raise UsageError(
                "`size_range` is [low, high): high itself is never drawn.",
                received=(low, high),
                advice="Give (k, k + 1) for a window of always the same size.",
            )
        self.size_range = (int(low), int(high))
        self.sigma_range = ranged(sigma_range, "sigma_range", least=0)
        self.symmetric = symmetric

    def _get_augment_params(self, img: Array) -> BlurWindow:
        width, height = (2 * int(half) + 1 for half in self.rng.randint(*self.size_range, 2))
        across, down = (float(sigma) for sigma in self._rand_range(*self.sigma_range, 2))
        if self.symmetric:
            return BlurWindow((width, width), (across, across))
        return BlurWindow((width, height), (across, down))

    def _augment(self, img: Array, params: BlurWindow) -> Array:
        if params.size == (1, 1):
            return img
        return like(cv2.GaussianBlur(img, params.size, params.sigma[0], sigmaY=params.sigma[1]), img)
