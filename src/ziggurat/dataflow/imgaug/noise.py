"""Noise and blur: Gaussian noise, salt and pepper, JPEG compression, and Gaussian blur.

A transform stores the seed of its noise, not the noise, so that it fits an image of any size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import (
    PhotometricAugmentor,
    draw_seed,
    fraction,
    noise_bits,
    normal_noise,
    positive,
    ranged,
    span,
)
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, fill_level, like
from ziggurat.errors import UsageError

__all__ = ["GaussianBlur", "GaussianNoise", "JpegNoise", "SaltPepperNoise"]


class GaussianNoise(PhotometricAugmentor):
    """Adds a normal number to each value.

    Args:
        sigma: its standard deviation, on the scale of the image: 0.03 of white is ``0.03 * 255`` for bytes.
        clip: keep floating-point images between 0 and white.
        white_level: white in floating-point images.
    """

    def __init__(self, sigma: float = 1, clip: bool = True, *, white_level: float = 255.0) -> None:
        self.sigma = positive(sigma, "sigma")
        self.clip = clip
        self.white_level = white_level

    def _get_augment_params(self, img: Array) -> int:
        return draw_seed(self.rng)

    def _augment(self, img: Array, params: int) -> Array:
        noise = normal_noise(params, img.shape)
        noise *= np.float32(self.sigma)
        if img.dtype == np.uint8:
            return like(cv2.add(img, noise, dtype=cv2.CV_8U), img)
        # `noise` is new memory, so the sum of `float32` images needs no other.
        result = np.add(img, noise, out=noise if img.dtype == np.float32 else None)
        return np.clip(result, 0, self.white_level, out=result) if self.clip else result


class SaltPepperNoise(PhotometricAugmentor):
    """Makes random pixels white or black, in all channels at once.

    Args:
        white_prob: share of white pixels.
        black_prob: share of black pixels.
        white_level: white in floating-point images.
    """

    def __init__(self, white_prob: float = 0.05, black_prob: float = 0.05, *, white_level: float = 255.0) -> None:
        self.white_prob = fraction(white_prob, "white_prob")
        self.black_prob = fraction(black_prob, "black_prob")
        self.white_level = white_level
        if white_prob + black_prob > 1:
            raise UsageError(
                "`white_prob` and `black_prob` add up to at most 1.",
                received=f"{white_prob} and {black_prob}",
                advice="Lower one of them.",
            )

    def _get_augment_params(self, img: Array) -> int:
        return draw_seed(self.rng)

    def _augment(self, img: Array, params: int) -> Array:
        drawn = noise_bits(params, img.shape[:2], np.uint32) * 2.0**-32
        noisy = img.copy()
        noisy[drawn >= 1 - self.white_prob] = fill_level(img, self.white_level)
        noisy[drawn < self.black_prob] = 0
        return noisy


class JpegNoise(PhotometricAugmentor):
    """Compresses with JPEG at a random quality, and decodes again: bytes only, of one or three channels (RGB).

    Args:
        quality_range: (least, most) quality from 0 to 100, both included.
    """

    types: ClassVar[Sequence[str]] = ("uint8",)

    def __init__(self, quality_range: Sequence[int] = (40, 100)) -> None:
        self.quality_range = span(quality_range, "quality_range")
        if self.quality_range[1] > 100:
            raise UsageError(
                f"`quality_range` is {quality_range}: JPEG's quality is from 0 to 100.", advice="Lower it."
            )

    def _get_augment_params(self, img: Array) -> int:
        return int(self.rng.randint(self.quality_range[0], self.quality_range[1] + 1))

    def _augment(self, img: Array, params: int) -> Array:
        channels = channels_of(img)
        if channels not in (1, 3):
            raise ImageError(
                "JPEG has one or three channels.",
                received=f"{channels} channels",
                advice="Drop the alpha channel first.",
            )
        # OpenCV encodes BGR: in the wrong order, JPEG would save bits on the wrong colors.
        ordered = img if channels == 1 else cv2.cvtColor(img, cv2.COLOR_RGB2BGR)
        _ok, encoded = cv2.imencode(".jpg", ordered, [cv2.IMWRITE_JPEG_QUALITY, params])
        decoded = cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR)
        assert decoded is not None, "OpenCV decodes what it encoded"
        return like(decoded, img) if channels == 1 else cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB, dst=decoded)


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
