"""Hue and saturation augmentors; a gray image has neither and stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import fraction, positive, ranged
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.colour_space import converted, grey_of
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, fill_level, saturate

__all__ = ["Hue", "HueSaturationValue", "Saturation"]

_TO_HSV = {True: cv2.COLOR_RGB2HSV, False: cv2.COLOR_BGR2HSV}
_FROM_HSV = {True: cv2.COLOR_HSV2RGB, False: cv2.COLOR_HSV2BGR}
_BYTES = np.arange(256, dtype=np.float64)


class Hue(PhotometricAugmentor):
    """Turns the color circle by a random angle.

    Args:
        range: (least, most) angle in units of two degrees: 180 is the whole circle. Negative numbers turn back.
        rgb: order of the channels: True for RGB, False for BGR.
    """

    def __init__(self, range: Sequence[float] = (0, 180), rgb: bool = True) -> None:  # noqa: A002
        self.range = ranged(range, "range")
        self.rgb = rgb

    def _get_augment_params(self, img: Array) -> float:
        return self._rand_range(*self.range)

    def _augment(self, img: Array, params: float) -> Array:
        if _is_grey(img, self):
            return img
        return _in_hsv(img, params / 180.0, 0.0, 0.0, rgb=self.rgb)


class Saturation(PhotometricAugmentor):
    """Mixes an image with its gray image, or moves it away from it: ``img * v + grey * (1 - v)``.

    Args:
        alpha: v is drawn from ``1 - alpha`` to ``1 + alpha``.
        rgb: order of the channels: True for RGB, False for BGR.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(self, alpha: float = 0.4, rgb: bool = True, clip: bool = True, *, white_level: float = 255.0) -> None:
        self.alpha = fraction(alpha, "alpha")
        self.rgb = rgb
        self.clip = clip
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> float:
        return 1.0 + self._rand_range(-self.alpha, self.alpha)

    def _augment(self, img: Array, params: float) -> Array:
        if _is_grey(img, self):
            return img
        grey = grey_of(img, rgb=self.rgb)
        result = cv2.addWeighted(img, params, cv2.merge([grey, grey, grey]), 1.0 - params, 0.0)
        if img.dtype == np.uint8 or not self.clip:
            return result
        return np.clip(result, 0, self.white_level, out=result)


class HueSaturationValue(PhotometricAugmentor):
    """Adds normal numbers to hue, saturation and value, as DIGITS does.

    Args:
        hue_std: standard deviation of the hue, as a fraction of the color circle.
        saturation_std: of the saturation, which is from 0 to 1.
        value_std: of the value, as a fraction of white.
        rgb: order of the channels: True for RGB, False for BGR.
        white_level: white in floating-point images.
    """

    def __init__(
        self,
        hue_std: float = 0.02,
        saturation_std: float = 0.04,
        value_std: float = 0.06,
        rgb: bool = True,
        *,
        white_level: float = 255.0,
    ) -> None:
        self.hue_std = positive(hue_std, "hue_std")
        self.saturation_std = positive(saturation_std, "saturation_std")
        self.value_std = positive(value_std, "value_std")
        self.rgb = rgb
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> tuple[float, float, float]:
        hue, saturation, value = (float(each) for each in self.rng.standard_normal(3))
        return hue * self.hue_std, saturation * self.saturation_std, value * self.value_std

    def _augment(self, img: Array, params: tuple[float, float, float]) -> Array:
        hue, saturation, value = params
        if _is_grey(img, self):
            change = np.asarray(value * fill_level(img, self.white_level))
            return saturate(np.clip(img + change.astype(np.float64), 0, fill_level(img, self.white_level)), img.dtype)
        return _in_hsv(img, hue, saturation, value, rgb=self.rgb, white=fill_level(img, self.white_level))


def _in_hsv(img: Array, hue: float, saturation: float, value: float, *, rgb: bool, white: float | None = None) -> Array:
    """Return an image with its hue turned (in circles), and saturation and value (in shares of white) raised."""
    hsv = converted(img, _TO_HSV[rgb])
    if img.dtype == np.uint8:
        tables = [(np.rint(_BYTES + hue * 180.0)) % 180.0, _BYTES + saturation * 255.0, _BYTES + value * 255.0]
        hsv = cv2.LUT(hsv, saturate(np.stack(tables, axis=1), np.uint8).reshape(1, 256, 3), dst=hsv)
    else:
        hsv[:, :, 0] = (hsv[:, :, 0] + hue * 360.0) % 360.0
        if saturation:
            hsv[:, :, 1] = np.clip(hsv[:, :, 1] + saturation, 0, 1)
        if value and white is not None:
            hsv[:, :, 2] = np.clip(hsv[:, :, 2] + value * white, 0, white)
    return converted(hsv, _FROM_HSV[rgb])


def _is_grey(img: Array, augmentor: Any) -> bool:
    channels = channels_of(img)
    if channels not in (1, 3):
        raise ImageError(
            f"{type(augmentor).__name__} needs images of one or three channels.",
            received=f"{channels} channels",
            advice="Drop the alpha channel first, for instance with `MapImage`.",
        )
    return channels == 1
