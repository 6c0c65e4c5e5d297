"""Noise augmentors: Gaussian, salt and pepper, and JPEG compression.

A transform stores the seed of its noise, not the noise, so that it fits an image of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import fraction, positive, span
from ziggurat.dataflow.imgaug.base import PhotometricAugmentor
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, fill_level, like
from ziggurat.dataflow.imgaug.randomness import draw_seed, noise_bits, normal_noise
from ziggurat.errors import UsageError

__all__ = ["GaussianNoise", "JpegNoise", "SaltPepperNoise"]


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
            raise UsageError("JPEG's quality is from 0 to 100.", received=quality_range, advice="Lower it.")

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
