"""Rotation by any angle, with or without cropping to the valid region."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import fraction, positive, ranged
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.images import Array
from ziggurat.dataflow.imgaug.matrices import about, centre_of, rotation_matrix
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.imgaug.warp import WarpAffineTransform, warp_in_place

__all__ = ["Rotation", "RotationAndCropValid", "valid_size"]


class Rotation(ImageAugmentor):
    """Turns by a random angle; the size of the image stays.

    Args:
        max_deg: most degrees, to both sides.
        center_range: the turning point is drawn from this range, as a fraction of width and of height.
        interp: OpenCV's number of the interpolation.
        border: OpenCV's number of what lies outside the image; 1 repeats the border pixel.
        step_deg: the angle is a multiple of it; None: any angle.
        border_value: the constant of border 0: one number, or one for each channel.
    """

    def __init__(
        self,
        max_deg: float,
        center_range: Sequence[float] = (0, 1),
        interp: int = cv2.INTER_LINEAR,
        border: int = cv2.BORDER_REPLICATE,
        step_deg: float | None = None,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        self.max_deg = positive(max_deg, "max_deg")
        self.center_range = ranged(center_range, "center_range")
        fraction(self.center_range[0], "center_range")
        fraction(self.center_range[1], "center_range")
        self.interp = interp
        self.border = border
        self.step_deg = None if step_deg is None else positive(step_deg, "step_deg", zero=False)
        self.border_value = border_value

    def get_transform(self, img: Array) -> Transform:
        centre = np.array([img.shape[1], img.shape[0]]) * self._rand_range(*self.center_range, 2)
        degrees = _drawn_angle(self, self.max_deg, self.step_deg)
        matrix = about(rotation_matrix(degrees), centre)
        return warp_in_place(img, matrix, self.interp, self.border, self.border_value)


class RotationAndCropValid(ImageAugmentor):
    """Turns about the center by a random angle and cuts out the largest upright part that the image covers.

    Args:
        max_deg: most degrees, to both sides.
        interp: OpenCV's number of the interpolation.
        step_deg: the angle is a multiple of it; None: any angle.
    """

    def __init__(self, max_deg: float, interp: int = cv2.INTER_LINEAR, step_deg: float | None = None) -> None:
        self.max_deg = positive(max_deg, "max_deg")
        self.interp = interp
        self.step_deg = None if step_deg is None else positive(step_deg, "step_deg", zero=False)

    def get_transform(self, img: Array) -> Transform:
        before = (img.shape[0], img.shape[1])
        degrees = _drawn_angle(self, self.max_deg, self.step_deg)
        height, width = valid_size(*before, degrees)
        after = (max(1, int(height + 1e-6)), max(1, int(width + 1e-6)))
        centre = centre_of(img)
        shift = (after[1] / 2 - centre[0], after[0] / 2 - centre[1])
        matrix = about(rotation_matrix(degrees), centre, shift)
        # A part of a pixel at a corner may still lie outside: it takes the color of the border.
        return WarpAffineTransform(matrix, before, after, self.interp, border=cv2.BORDER_REPLICATE)


def valid_size(h: float, w: float, degrees: float) -> tuple[float, float]:
    """Return (height, width) of the largest upright rectangle in an image of ``h`` x ``w`` turned about its center.

    An upright rectangle of half sides (a, b) lies inside where ``a cos + b sin <= w / 2`` and ``a sin + b cos <= h /
    2``. Either both limits are met at once, or the shorter side alone decides, and then a and b share it so that a * b
    is largest.
    """
    cosine, sine = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
    shorter, longer = min(h, w), max(h, w)
    if shorter <= 2 * sine * cosine * longer or abs(cosine - sine) < 1e-9:
        along, across = 0.5 * shorter / sine, 0.5 * shorter / cosine
        return (across, along) if w >= h else (along, across)
    difference = cosine * cosine - sine * sine
    return (h * cosine - w * sine) / difference, (w * cosine - h * sine) / difference


def _drawn_angle(augmentor: ImageAugmentor, max_deg: float, step_deg: float | None) -> float:
    if step_deg is None:
        return float(augmentor.rng.uniform(-max_deg, max_deg))
    steps = int(max_deg / step_deg + 1e-9)
    return float(augmentor.rng.randint(-steps, steps + 1) * step_deg)
