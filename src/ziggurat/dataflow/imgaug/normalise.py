"""Clipping, normalization and type conversion, all deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ziggurat.dataflow.imgaug.arguments import positive, ranged
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.images import IMAGE_TYPES, Array, ImageError, saturate

__all__ = ["Clip", "MeanVarianceNormalize", "MinMaxNormalize", "ToFloat32", "ToUint8"]


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
