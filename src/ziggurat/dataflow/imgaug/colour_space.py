"""Color space and grayscale conversions.

RGB is the order of channels unless an argument says otherwise.
"""

from __future__ import annotations

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of

__all__ = ["ColorSpace", "Grayscale", "converted", "grey_of"]


class ColorSpace(PhotometricAugmentor):
    """Converts to another color space.

    Args:
        mode: OpenCV's number of the conversion, such as ``cv2.COLOR_RGB2HSV``.
        keepdims: a result of one channel is (H, W, 1), else (H, W).
    """

    def __init__(self, mode: int, keepdims: bool = True) -> None:
        self.mode = mode
        self.keepdims = keepdims

    def _augment(self, img: Array, params: None) -> Array:
        result = converted(img, self.mode)
        return result[:, :, None] if self.keepdims and result.ndim == 2 else result


class Grayscale(PhotometricAugmentor):
    """Converts to gray: 0.299 red + 0.587 green + 0.114 blue. A gray image stays.

    Args:
        keepdims: the result is (H, W, 1), else (H, W).
        rgb: order of the channels: True for RGB, False for BGR.
        keepshape: repeat the gray value, so that the result is (H, W, 3).
    """

    def __init__(self, keepdims: bool = True, rgb: bool = True, keepshape: bool = False) -> None:
        self.keepdims = keepdims
        self.rgb = rgb
        self.keepshape = keepshape

    def _augment(self, img: Array, params: None) -> Array:
        grey = grey_of(img, rgb=self.rgb)
        if self.keepshape:
            return cv2.merge([grey, grey, grey])
        return grey[:, :, None] if self.keepdims else grey


def grey_of(img: Array, *, rgb: bool = True) -> Array:
    """Return the gray image (H, W) of an image of one or three channels.

    Raises:
        ImageError: for another number of channels.
    """
    if channels_of(img) == 1:
        return img if img.ndim == 2 else img[:, :, 0]
    if channels_of(img) != 3:
        raise ImageError(
            "Gray is made of images of one or three channels.",
            received=f"{channels_of(img)} channels",
            advice="Drop the alpha channel first, for instance with `MapImage`.",
        )
    return converted(img, cv2.COLOR_RGB2GRAY if rgb else cv2.COLOR_BGR2GRAY)


def converted(img: Array, code: int) -> Array:
    """Return what ``cv2.cvtColor`` gives, for ``float64`` too.

    Raises:
        ImageError: where the image has not the channels that the conversion needs.
    """
    single = img.astype(np.float32) if img.dtype == np.float64 else img
    try:
        return cv2.cvtColor(single, code).astype(img.dtype, copy=False)
    except cv2.error as error:
        raise ImageError(
            "A conversion of colors needs an image with the channels of its source.",
            received=f"an image {img.shape} of type {img.dtype} for OpenCV's conversion {code}",
            advice="Check the image's channels and the conversion's number.",
        ) from error
