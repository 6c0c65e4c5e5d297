"""Shift, zoom, shear, and their combination with rotation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import fraction, positive, ranged
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.imgaug.matrices import about, centre_of, rotation_matrix, shear_matrix, shift_matrix
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.imgaug.warp import warp_in_place
from ziggurat.errors import UsageError

__all__ = ["Affine", "Rescale", "Shear", "Shift"]


class Shift(ImageAugmentor):
    """Shifts by a random whole number of pixels.

    Args:
        horiz_frac: most, as a fraction of the width.
        vert_frac: most, as a fraction of the height.
        border: OpenCV's number of what lies outside the image; 1 repeats the border pixel.
        border_value: the constant of border 0: one number, or one for each channel.
    """

    def __init__(
        self,
        horiz_frac: float = 0,
        vert_frac: float = 0,
        border: int = cv2.BORDER_REPLICATE,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        self.horiz_frac = fraction(horiz_frac, "horiz_frac")
        self.vert_frac = fraction(vert_frac, "vert_frac")
        self.border = border
        self.border_value = border_value

    def get_transform(self, img: Array) -> Transform:
        matrix = shift_matrix(*_drawn_shift(self, img, (self.horiz_frac, self.vert_frac)))
        return warp_in_place(img, matrix, cv2.INTER_NEAREST, self.border, self.border_value)


class Affine(ImageAugmentor):
    """Zooms, shears, turns and shifts at once, about the center of the image.

    Args:
        scale: (least, most) factor of the size; None: 1.
        translate_frac: (horizontal, vertical): most shift, as fractions of width and height, in whole pixels; None:
            none.
        rotate_max_deg: most degrees to turn, to both sides.
        shear: most degrees by which the y axis leans, to both sides; lengths along both axes stay.
        interp: OpenCV's number of the interpolation.
        border: OpenCV's number of what lies outside the image; 1 repeats the border pixel.
        border_value: the constant of border 0: one number, or one for each channel.
    """

    def __init__(
        self,
        scale: Sequence[float] | None = None,
        translate_frac: Sequence[float] | None = None,
        rotate_max_deg: float = 0.0,
        shear: float = 0.0,
        interp: int = cv2.INTER_LINEAR,
        border: int = cv2.BORDER_REPLICATE,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        self.scale = None if scale is None else ranged(scale, "scale", least=1e-6)
        self.translate_frac = None if translate_frac is None else _fractions(translate_frac)
        self.rotate_max_deg = positive(rotate_max_deg, "rotate_max_deg")
        self.shear = _leaning(shear)
        self.interp = interp
        self.border = border
        self.border_value = border_value

    def get_transform(self, img: Array) -> Transform:
        scale = 1.0 if self.scale is None else self._rand_range(*self.scale)
        shift = (0.0, 0.0) if self.translate_frac is None else _drawn_shift(self, img, self.translate_frac)
        shear = self._rand_range(-self.shear, self.shear) if self.shear else 0.0
        turn = self._rand_range(-self.rotate_max_deg, self.rotate_max_deg) if self.rotate_max_deg else 0.0
        linear = scale * rotation_matrix(turn) @ shear_matrix(shear)
        matrix = about(linear, centre_of(img), shift)
        return warp_in_place(img, matrix, self.interp, self.border, self.border_value)


class Shear(Affine):
    """Shears at random, about the center of the image.

    Args:
        max_deg: most degrees by which the y axis leans, to both sides; lengths along both axes stay.
        interp: OpenCV's number of the interpolation.
        border: OpenCV's number of what lies outside the image; 1 repeats the border pixel.
        border_value: the constant of border 0: one number, or one for each channel.
    """

    def __init__(
        self,
        max_deg: float,
        interp: int = cv2.INTER_LINEAR,
        border: int = cv2.BORDER_REPLICATE,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        super().__init__(shear=max_deg, interp=interp, border=border, border_value=border_value)


class Rescale(ImageAugmentor):
    """Zooms about the center of the image, whose size stays: the "rescale" of DIGITS.

    The factor is ``exp(n)`` for a normal number ``n``, so that it is as often f as 1 / f.

    Args:
        std: standard deviation of ``n``: 0.07 changes the size by 7 % or so.
        interp: OpenCV's number of the interpolation.
        border: OpenCV's number of what lies outside the image; 1 repeats the border pixel.
        border_value: the constant of border 0: one number, or one for each channel.
    """

    def __init__(
        self,
        std: float,
        interp: int = cv2.INTER_LINEAR,
        border: int = cv2.BORDER_REPLICATE,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        self.std = positive(std, "std")
        self.interp = interp
        self.border = border
        self.border_value = border_value

    def get_transform(self, img: Array) -> Transform:
        factor = math.exp(self.std * float(self.rng.standard_normal()))
        matrix = about(factor * np.eye(2), centre_of(img))
        return warp_in_place(img, matrix, self.interp, self.border, self.border_value)


def _drawn_shift(augmentor: ImageAugmentor, img: Array, fractions: Sequence[float]) -> tuple[float, float]:
    """Draw (dx, dy) in whole pixels."""
    most_x, most_y = fractions[0] * img.shape[1], fractions[1] * img.shape[0]
    return float(round(augmentor.rng.uniform(-most_x, most_x))), float(round(augmentor.rng.uniform(-most_y, most_y)))


def _fractions(values: Sequence[float]) -> tuple[float, float]:
    horizontal, vertical = values
    return fraction(horizontal, "translate_frac"), fraction(vertical, "translate_frac")


def _leaning(degrees: float) -> float:
    if positive(degrees, "shear") < 90:
        return float(degrees)
    raise UsageError("A shear is below 90 degrees.", received=degrees, advice="Give a smaller number, such as 10.")
