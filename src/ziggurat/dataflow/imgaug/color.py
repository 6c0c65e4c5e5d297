"""Color and tone: color spaces, hue, saturation, brightness, contrast, gamma, lighting, and normalization.

RGB is the order of channels unless an argument says otherwise. A gray image has neither hue nor saturation and stays
unchanged by them. Bytes are rounded and clipped to 0 and 255; floating-point images keep their type and are clipped to
0 and ``white_level`` where ``clip`` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import PhotometricAugmentor, fraction, positive, ranged
from ziggurat.dataflow.imgaug.images import IMAGE_TYPES, Array, ImageError, channels_of, fill_level, like, saturate
from ziggurat.errors import UsageError

__all__ = [
    "Brightness",
    "BrightnessScale",
    "Clip",
    "ColorSpace",
    "Contrast",
    "Gamma",
    "Grayscale",
    "Hue",
    "HueSaturationValue",
    "Lighting",
    "MeanVarianceNormalize",
    "MinMaxNormalize",
    "Saturation",
    "ToFloat32",
    "ToUint8",
]

_TO_HSV = {True: cv2.COLOR_RGB2HSV, False: cv2.COLOR_BGR2HSV}
_FROM_HSV = {True: cv2.COLOR_HSV2RGB, False: cv2.COLOR_HSV2BGR}
_BYTES = np.arange(256, dtype=np.float64)


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
        gray = gray_of(img, rgb=self.rgb)
        if self.keepshape:
            return cv2.merge([gray, gray, gray])
        return gray[:, :, None] if self.keepdims else gray


def gray_of(img: Array, *, rgb: bool = True) -> Array:
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
        if _is_gray(img, self):
            return img
        return _in_hsv(img, params / 180.0, 0.0, 0.0, rgb=self.rgb)


class Saturation(PhotometricAugmentor):
    """Mixes an image with its gray image, or moves it away from it: ``img * v + gray * (1 - v)``.

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
        if _is_gray(img, self):
            return img
        gray = gray_of(img, rgb=self.rgb)
        result = cv2.addWeighted(img, params, cv2.merge([gray, gray, gray]), 1.0 - params, 0.0)
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
        if _is_gray(img, self):
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


def _is_gray(img: Array, augmentor: Any) -> bool:
    channels = channels_of(img)
    if channels not in (1, 3):
        raise ImageError(
            f"{type(augmentor).__name__} needs images of one or three channels.",
            received=f"{channels} channels",
            advice="Drop the alpha channel first, for instance with `MapImage`.",
        )
    return channels == 1


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
        return _linear(img, params, (1 - params) * float(gray_of(img, rgb=self.rgb).mean()), self)


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


class Clip(PhotometricAugmentor):
    """Clips values; the type stays.

    Args:
        min: least value.
        max: most.
    """

    types: ClassVar[Sequence[str]] = IMAGE_TYPES

    def __init__(self, min: float = 0, max: float = 255) -> None:  # noqa: A002
        self.min, self.max = ranged((min, max), "(min, max)")

    def _augment(self, img: Array, params: None) -> Array:
        if img.dtype.kind == "f":
            return np.clip(img, self.min, self.max)
        limits = np.iinfo(img.dtype)
        low, high = (int(np.clip(limit, limits.min, limits.max)) for limit in (self.min, self.max))
        return np.clip(img, low, high)


class MeanVarianceNormalize(PhotometricAugmentor):
    """Whitens an image: mean 0 and deviation 1. The result is ``float32``; ``float64`` stays.

    The deviation counts as at least ``1 / sqrt(number of values)``, so that an image of one color becomes 0.

    Args:
        all_channel: over all channels together, else each channel apart.
    """

    types: ClassVar[Sequence[str]] = IMAGE_TYPES

    def __init__(self, all_channel: bool = True) -> None:
        self.all_channel = all_channel

    def _augment(self, img: Array, params: None) -> Array:
        result = _floating(img)
        axes = None if self.all_channel else (0, 1)
        mean = result.mean(axis=axes, dtype=np.float64, keepdims=True)
        result -= mean.astype(result.dtype)
        variance = np.square(result).mean(axis=axes, dtype=np.float64, keepdims=True)
        values = result.size if self.all_channel else result.shape[0] * result.shape[1]
        result /= np.maximum(np.sqrt(variance), 1 / np.sqrt(values)).astype(result.dtype)
        return result


class MinMaxNormalize(PhotometricAugmentor):
    """Stretches an image so that it reaches from ``min`` to ``max``. The result is ``float32``; ``float64`` stays.

    An image of one color becomes ``min``.

    Args:
        min: least value of the result.
        max: most.
        all_channel: over all channels together, else each channel apart.
    """

    types: ClassVar[Sequence[str]] = IMAGE_TYPES

    def __init__(self, min: float = 0, max: float = 255, all_channel: bool = True) -> None:  # noqa: A002
        self.min, self.max = ranged((min, max), "(min, max)")
        self.all_channel = all_channel

    def _augment(self, img: Array, params: None) -> Array:
        result = _floating(img)
        axes = None if self.all_channel else (0, 1)
        least, most = result.min(axis=axes, keepdims=True), result.max(axis=axes, keepdims=True)
        result -= least
        stretch = (self.max - self.min) / np.where(most > least, most - least, 1)
        result *= stretch.astype(result.dtype)
        result += result.dtype.type(self.min)
        return result


class ToUint8(PhotometricAugmentor):
    """Converts to bytes: scaled, rounded to the nearest, and clipped.

    Args:
        white_level: the value that becomes 255: 1.0 for images from 0 to 1, 65535 for ``uint16`` of full range.
    """

    types: ClassVar[Sequence[str]] = IMAGE_TYPES

    def __init__(self, white_level: float = 255.0) -> None:
        self.white_level = positive(white_level, "white_level", zero=False)

    def _augment(self, img: Array, params: None) -> Array:
        if img.dtype == np.uint8:
            return img
        values = _floating(img)
        if np.isnan(values.min()):  # the minimum is NaN where any value is
            raise ImageError(
                "`ToUint8` needs numbers.", received="NaN in the image", advice="Look at the augmentors before it."
            )
        if self.white_level != 255.0:
            values *= values.dtype.type(255.0 / self.white_level)
        return saturate(values, np.uint8)


class ToFloat32(PhotometricAugmentor):
    """Converts to ``float32``; the values stay."""

    types: ClassVar[Sequence[str]] = IMAGE_TYPES

    def _augment(self, img: Array, params: None) -> Array:
        return img.astype(np.float32, copy=False)


def _floating(img: Array) -> Array:
    """Return a copy of an image in floating point, which may be written to."""
    return img.astype(img.dtype if img.dtype == np.float64 else np.float32)
