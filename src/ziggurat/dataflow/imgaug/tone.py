"""Brightness, contrast, gamma and lighting augmentors.

Bytes are rounded and clipped to 0 and 255. Floating-point images keep their type and are clipped to 0 and
``white_level`` where ``clip`` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import positive, ranged
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.colour_space import grey_of
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, like, saturate
from ziggurat.errors import UsageError

__all__ = ["Brightness", "BrightnessScale", "Contrast", "Gamma", "Lighting"]

_BYTES = np.arange(256, dtype=np.float64)


class Brightness(PhotometricAugmentor):
    """Adds a random number to all values.

    Args:
        delta: largest value that is added or subtracted.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(self, delta: float, clip: bool = True, *, white_level: float = 255.0) -> None:
        self.delta = positive(delta, "delta")
        self.clip = clip
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> float:
        return self._rand_range(-self.delta, self.delta)

    def _augment(self, img: Array, params: float) -> Array:
        return _linear(img, 1.0, params, self)


class BrightnessScale(PhotometricAugmentor):
    """Multiplies all values by a random factor.

    Args:
        range: (least, most) factor.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(self, range: Sequence[float], clip: bool = True, *, white_level: float = 255.0) -> None:  # noqa: A002
        self.range = ranged(range, "range", least=0)
        self.clip = clip
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> float:
        return self._rand_range(*self.range)

    def _augment(self, img: Array, params: float) -> Array:
        return _linear(img, params, 0.0, self)


class Contrast(PhotometricAugmentor):
    """Moves all values away from their mean, or towards it, by a random factor.

    Args:
        factor_range: (least, most) factor; 1 changes nothing.
        rgb: None takes the mean of each channel; True the mean of the gray image of an RGB image, False of a BGR
            image.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(
        self,
        factor_range: Sequence[float],
        rgb: bool | None = None,
        clip: bool = True,
        *,
        white_level: float = 255.0,
    ) -> None:
        self.factor_range = ranged(factor_range, "factor_range", least=0)
        self.rgb = rgb
        self.clip = clip
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> float:
        return self._rand_range(*self.factor_range)

    def _augment(self, img: Array, params: float) -> Array:
        if self.rgb is None:
            return _linear(img, params, (1 - params) * _channel_means(img), self)
        return _linear(img, params, (1 - params) * float(grey_of(img, rgb=self.rgb).mean()), self)


class Gamma(PhotometricAugmentor):
    """Raises values, as fractions of white, to the power ``1 / (1 + g)`` with a random g.

    Args:
        range: (least, most) g, above -1; 0 changes nothing, more is brighter.
        white_level: white in floating-point images; values below 0 and above white are clipped.
    """

    def __init__(self, range: Sequence[float] = (-0.5, 0.5), *, white_level: float = 255.0) -> None:  # noqa: A002
        self.range = ranged(range, "range", least=-0.999)
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> float:
        return self._rand_range(*self.range)

    def _augment(self, img: Array, params: float) -> Array:
        power = 1.0 / (1.0 + params)
        if img.dtype == np.uint8:
            return _looked_up(img, (_BYTES / 255.0) ** power * 255.0)
        white = img.dtype.type(self.white_level)
        shares = np.clip(img, 0, white)
        shares /= white
        np.power(shares, img.dtype.type(power), out=shares)
        shares *= white
        return shares


class Lighting(PhotometricAugmentor):
    """Adds a random color along the principal components of the data's colors.

    Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks" (NIPS 2012).

    Args:
        std: standard deviation of each component's weight.
        eigval: (3,) eigenvalues of the covariance of the data's colors.
        eigvec: (3, 3) eigenvectors, in columns; rows in the order of the image's channels.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(self, std: float, eigval: Any, eigvec: Any, clip: bool = True, *, white_level: float = 255.0) -> None:
        self.std = positive(std, "std")
        self.eigval = np.asarray(eigval, dtype=np.float64)
        self.eigvec = np.asarray(eigvec, dtype=np.float64)
        self.clip = clip
        self.white_level = white_level
        if self.eigval.shape != (3,) or self.eigvec.shape != (3, 3):
            raise UsageError(
                "`eigval` has shape (3,) and `eigvec` (3, 3).",
                received=f"{self.eigval.shape} and {self.eigvec.shape}",
                advice="Take them from the covariance of the data's colors.",
            )

    def _get_augment_params(self, img: Array) -> Array:
        if channels_of(img) != 3:
            raise ImageError(
                "`Lighting` needs images of three channels.", received=img.shape, advice="Decode the images in color."
            )
        return self.eigvec @ (self.rng.standard_normal(3) * self.std * self.eigval)

    def _augment(self, img: Array, params: Array) -> Array:
        return _linear(img, 1.0, params, self)


def _linear(img: Array, factor: float, offset: float | Array, augmentor: Any) -> Array:
    """Return ``img * factor + offset`` with one offset, or one for each channel."""
    if img.dtype == np.uint8:
        if np.size(offset) == 1:
            return like(cv2.addWeighted(img, factor, img, 0.0, float(np.ravel(offset)[0])), img)
        return _looked_up(img, _BYTES[:, None] * factor + offset)
    result = img * img.dtype.type(factor)
    result += np.asarray(offset, dtype=img.dtype)
    return np.clip(result, 0, augmentor.white_level, out=result) if augmentor.clip else result


def _looked_up(img: Array, table: Array) -> Array:
    """Return bytes replaced by a table (256,) for all channels, or (256, C)."""
    lookup = saturate(table, np.uint8)
    return like(cv2.LUT(img, lookup if lookup.ndim == 1 else lookup.reshape(1, 256, -1)), img)


def _channel_means(img: Array) -> Array:
    channels = channels_of(img)
    if channels <= 4:
        return np.array(cv2.mean(img)[:channels])
    return np.array([cv2.mean(np.ascontiguousarray(img[:, :, at]))[0] for at in range(channels)])
