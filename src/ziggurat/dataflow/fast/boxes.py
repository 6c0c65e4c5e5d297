"""Crop policies: boxes computed from random numbers, for many images at once.

A policy receives rows of uniform random numbers. The boxes depend on these alone: not on the decoder, the number of
threads, or earlier draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from ziggurat.errors import UsageError

__all__ = [
    "CenterResizedCrop",
    "CropPolicy",
    "RandomResizedCrop",
    "ScaledRandomCrop",
    "denominators",
    "grid_boxes",
]

_ATTEMPTS = 10
_DENOMINATORS = (2, 4, 8)


class CropPolicy(Protocol):
    """Chooses a box in each image."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result in pixels."""
        ...

    @property
    def numbers(self) -> int:
        """How many random numbers an image takes."""
        ...

    def boxes(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose.

        Args:
            numbers: (N, ``self.numbers``) float64, uniform in [0, 1).
            sizes: (N, 2) int, width and height of each image.

        Returns:
            boxes: (N, 4) int32: x, y, width, height.
            flips: (N,) bool: mirrored left and right.
        """
        ...


@dataclass(frozen=True)
class RandomResizedCrop:
    """A box of random area and aspect ratio, resized: the usual augmentation of photographs for training.

    It is that of Szegedy et al., "Going deeper with convolutions" (CVPR 2015), section 6: ten boxes are tried; where
    none lies in the image, the largest centered one with an allowed ratio is taken.

    Args:
        size: height and width of the result in pixels, or (height, width).
        area: smallest and largest share of the image's area.
        aspect: smallest and largest width divided by height.
        flip: whether every second image, by chance, is mirrored left and right.
    """

    size: int | tuple[int, int] = 224
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = True

    def __post_init__(self) -> None:
        _check_size(self.size)
        if not (0 < self.area[0] <= self.area[1] <= 1 and 0 < self.aspect[0] <= self.aspect[1]):
            raise UsageError(
                f"area={self.area} and aspect={self.aspect} are no ranges: `area` is (smallest, largest) "
                "within (0, 1], `aspect` (smallest, largest) above 0."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result in pixels."""
        return _shape(self.size)

    @property
    def numbers(self) -> int:
        """Two numbers for each attempt, and three for place and flip."""
        return 2 * _ATTEMPTS + 3

    def boxes(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose a box in each image; see ``CropPolicy.boxes``."""
        image = sizes.astype(np.float64)[:, None, :]
        low, high = self.area
        area = image[..., 0] * image[..., 1] * (low + (high - low) * numbers[:, :_ATTEMPTS])
        first, last = math.log(self.aspect[0]), math.log(self.aspect[1])
        ratio = np.exp(first + (last - first) * numbers[:, _ATTEMPTS : 2 * _ATTEMPTS])
        tried = np.rint(np.sqrt(np.stack([area * ratio, area / ratio], axis=-1)))
        fits: np.ndarray = np.all((tried >= 1) & (tried <= image), axis=2)
        rows = np.arange(len(sizes))
        chosen = tried[rows, fits.argmax(axis=1)]
        place = numbers[:, 2 * _ATTEMPTS : 2 * _ATTEMPTS + 2]
        none_fits: np.ndarray = ~np.any(fits, axis=1)
        if none_fits.any():
            chosen = np.where(none_fits[:, None], self._largest(sizes), chosen)
            place = np.where(none_fits[:, None], 0.5, place)
        corner = np.floor(place * (sizes - chosen + 1))
        boxes = np.concatenate([corner, chosen], axis=1).astype(np.int32)
        flips = numbers[:, 2 * _ATTEMPTS + 2] < 0.5 if self.flip else np.zeros(len(sizes), bool)
        return boxes, flips

    def _largest(self, sizes: np.ndarray) -> np.ndarray:
        width, height = sizes[:, 0].astype(np.float64), sizes[:, 1].astype(np.float64)
        widest = np.minimum(width, np.rint(height * self.aspect[1]))
        highest = np.minimum(height, np.rint(width / self.aspect[0]))
        return np.maximum(1, np.stack([widest, highest], axis=1))


@dataclass(frozen=True)
class CenterResizedCrop:
    """The centered square with a share of the image's shorter side, resized: the usual way to evaluate.

    Args:
        size: height and width of the result in pixels.
        share: side of the square as a share of the shorter side; 0.875 is "resize to 256, crop 224".
    """

    size: int = 224
    share: float = 0.875

    def __post_init__(self) -> None:
        _check_size(self.size)
        if not 0 < self.share <= 1:
            raise UsageError("`share` is above 0 and at most 1.", received=repr(self.share))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result in pixels."""
        return _shape(self.size)

    @property
    def numbers(self) -> int:
        """No random number is taken."""
        return 0

    def boxes(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose a box in each image; see ``CropPolicy.boxes``."""
        side = np.maximum(1, np.rint(sizes.min(axis=1) * self.share)).astype(np.int32)
        corner = (sizes - side[:, None]) // 2
        return np.column_stack([corner, side, side]).astype(np.int32), np.zeros(len(sizes), bool)


@dataclass(frozen=True)
class ScaledRandomCrop:
    """A crop at a random place of an image that is scaled to a fixed size first: what a training job asks for.

    The scaling and the crop become one box of the image, so that only the box is decoded and resized. A side of the
    box that falls between two pixels goes to the nearer one.

    Args:
        size: (height, width) that the whole image is scaled to.
        crop: (height, width) of the result, no larger than ``size``.
        mode: "squash" ignores the aspect ratio; "crop" keeps it, covers the size, and leaves out what is too much on
            both sides alike.
        flip: whether every second image, by chance, is mirrored left and right.
    """

    size: tuple[int, int]
    crop: tuple[int, int]
    mode: Literal["squash", "crop"] = "squash"
    flip: bool = False

    def __post_init__(self) -> None:
        _check_size(self.size)
        _check_size(self.crop)
        if self.crop[0] > self.size[0] or self.crop[1] > self.size[1]:
            raise UsageError("`crop` must be no larger than `size`.", received=f"crop={self.crop}, size={self.size}")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the result in pixels."""
        return self.crop

    @property
    def numbers(self) -> int:
        """Two numbers for the place, and one for the flip."""
        return 3

    def boxes(self, numbers: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose a box in each image; see ``CropPolicy.boxes``."""
        scaled = np.array(self.size[::-1], np.float64)
        crop = np.array(self.crop[::-1], np.float64)
        factors = sizes / scaled  # pixels of the image in one of the scaled image
        if self.mode == "crop":
            factors = np.repeat(factors.min(axis=1, keepdims=True), 2, axis=1)
        margins = (sizes - scaled * factors) / 2
        places = np.floor(numbers[:, :2] * (scaled - crop + 1))
        corners = np.rint(margins + places * factors).astype(np.int32)
        ends = np.rint(margins + (places + crop) * factors).astype(np.int32)
        corners = np.clip(corners, 0, sizes - 1)
        ends = np.clip(ends, corners + 1, sizes)
        flips = numbers[:, 2] < 0.5 if self.flip else np.zeros(len(sizes), bool)
        return np.concatenate([corners, ends - corners], axis=1).astype(np.int32), flips


def denominators(boxes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return by how much each box may be reduced, 1, 2, 4 or 8, to be no smaller than ``shape``."""
    most = np.minimum(boxes[:, 2] // shape[1], boxes[:, 3] // shape[0])
    found = np.ones(len(boxes), np.int32)
    for denominator in _DENOMINATORS:
        found[most >= denominator] = denominator
    return found


def grid_boxes(boxes: np.ndarray, sizes: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the boxes, enlarged to whole pixels of the reduced images: less than one of these on each side.

    Args:
        boxes: (N, 4) int32.
        sizes: (N, 2) int, width and height of the images.
        denominator: (N,) int.
    """
    step = denominator[:, None]
    corner = boxes[:, :2] // step * step
    end = np.minimum(-(-(boxes[:, :2] + boxes[:, 2:]) // step) * step, sizes)
    return np.concatenate([corner, end - corner], axis=1).astype(np.int32)


def _shape(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _check_size(size: int | tuple[int, int]) -> None:
    if min(_shape(size)) < 1 or len(_shape(size)) != 2:
        raise UsageError("`size` is a number of pixels, or (height, width).", received=repr(size))
