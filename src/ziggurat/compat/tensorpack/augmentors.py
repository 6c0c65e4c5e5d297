"""Augmentors that Ziggurat has no others for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ziggurat.dataflow import imgaug
from ziggurat.dataflow.imgaug import ImageAugmentor
from ziggurat.dataflow.imgaug import transform as transforms

__all__ = ["BaseTransform", "GaussianDeform", "Grayscale", "ImageTransform", "TransformAugmentorBase"]

BaseTransform = ImageTransform = transforms.Transform
"""Other names of ``Transform``."""


class TransformAugmentorBase(ImageAugmentor):
    """Base of augmentors of Tensorpack 0.8 whose ``_get_augment_params`` returns a transform."""

    def get_transform(self, img: np.ndarray) -> transforms.Transform:
        """Return what ``_get_augment_params`` draws.

        Args:
            img: (H, W) or (H, W, C).
        """
        return self._get_augment_params(img)


class Grayscale(imgaug.Grayscale):
    """``ziggurat.dataflow.imgaug.Grayscale``, which takes the channels for blue, green and red where none are named."""

    def __init__(self, keepdims: bool = True, rgb: bool = False, keepshape: bool = False) -> None:
        super().__init__(keepdims, rgb, keepshape)


class GaussianDeform(ImageAugmentor):
    """Moves the surroundings of some anchors, each by an offset of its own.

    Args:
        anchors: places in the image, (x, y) as parts of its sides in [0, 1].
        shape: (height, width) of the images, in pixels.
        sigma: radius of the surroundings, as a part of the sides.
        randrange: largest offset, in pixels; an eighth of the larger side where it is None.
    """

    def __init__(self, anchors: Any, shape: Any, sigma: float = 0.5, randrange: float | None = None) -> None:
        super().__init__()
        height, width = shape
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        distances = [((x / width - ax) ** 2 + (y / height - ay) ** 2) / (2 * sigma**2) for ax, ay in anchors]
        weights = np.exp(-np.asarray(distances, np.float32))
        self._weights = weights / weights.sum(axis=0)
        self._grid = x, y
        self._largest = max(height, width) / 8 if randrange is None else randrange

    def _get_augment_params(self, img: np.ndarray) -> np.ndarray:
        return self._rand_range(-self._largest, self._largest, (len(self._weights), 2))

    def _augment(self, img: np.ndarray, params: np.ndarray) -> np.ndarray:
        import cv2

        dx, dy = np.tensordot(params.T.astype(np.float32), self._weights, 1).astype(np.float32)
        x, y = self._grid
        return cv2.remap(img, x + dx, y + dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
