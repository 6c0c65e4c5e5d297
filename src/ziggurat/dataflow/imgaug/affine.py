"""Affine warps: shift, zoom, shear, rotation by any angle, and their combination.

A matrix here maps source coordinates to destination coordinates, in the pixel convention of ``images.py``. OpenCV
counts from pixel centers instead, so ``from_centers`` shifts a matrix by half a pixel on both sides for OpenCV.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, fraction, positive, ranged
from ziggurat.dataflow.imgaug.images import (
    Array,
    carried,
    channels_of,
    check_image,
    check_size,
    color_of,
    in_fours,
    move,
)
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.errors import UsageError

__all__ = ["Affine", "Rescale", "Rotation", "RotationAndCropValid", "Shear", "Shift", "WarpAffineTransform"]


class WarpAffineTransform(Transform):
    """Warps an image by a matrix.

    Args:
        matrix: (2, 3): ``matrix @ (x, y, 1)`` is where the place (x, y) goes.
        before: (height, width) of the image in pixels.
        after: (height, width) of the result in pixels.
        interp: OpenCV's number of the interpolation; masks take the nearest pixel.
        border: OpenCV's number of what lies outside: 0 a constant, 1 the border pixel repeated, 2 and 4 reflected, 3
            wrapped.
        border_value: the constant: one number, or one for each channel. Masks have a ``fill`` of their own.
    """

    def __init__(
        self,
        matrix: Array,
        before: tuple[int, int],
        after: tuple[int, int],
        interp: int = cv2.INTER_LINEAR,
        *,
        border: int = cv2.BORDER_CONSTANT,
        border_value: float | Sequence[float] = 0,
    ) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.before = before
        self.after = after
        self.interp = interp
        self.border = border
        self.border_value = border_value

    @property
    def mirrors(self) -> bool:
        return bool(np.linalg.det(self.matrix[:, :2]) < 0)

    def apply_image(self, img: Array) -> Array:
        check_image(img, by="WarpAffineTransform")
        check_size(img, *self.before, self)
        color = color_of(self.border_value, channels_of(img))
        return in_fours(img, lambda part, channels: self._warped(part, self.interp, color[channels]))

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        return (points @ self.matrix[:, :2].T + self.matrix[:, 2]).astype(points.dtype, copy=False)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        check_size(mask, *self.before, self)
        color = (carried(fill, mask.dtype),) * 4
        return move(mask, lambda part: self._warped(part, cv2.INTER_NEAREST, color))

    def _warped(self, img: Array, interp: int, color: Sequence[float]) -> Array:
        matrix = from_centers(self.matrix)
        size = (self.after[1], self.after[0])
        return cv2.warpAffine(img, matrix, size, flags=interp, borderMode=self.border, borderValue=tuple(color))


def warp_in_place(
    img: Array, matrix: Array, interp: int, border: int, border_value: float | Sequence[float]
) -> WarpAffineTransform:
    """Return the warp of ``img`` by a matrix whose result has the size of ``img``."""
    size = (img.shape[0], img.shape[1])
    return WarpAffineTransform(matrix, size, size, interp, border=border, border_value=border_value)


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
        # A whole number of pixels needs no interpolation.
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
        matrix = about(linear, center_of(img), shift)
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
        matrix = about(factor * np.eye(2), center_of(img))
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
        center = np.array([img.shape[1], img.shape[0]]) * self._rand_range(*self.center_range, 2)
        degrees = _drawn_angle(self, self.max_deg, self.step_deg)
        matrix = about(rotation_matrix(degrees), center)
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
        center = center_of(img)
        shift = (after[1] / 2 - center[0], after[0] / 2 - center[1])
        matrix = about(rotation_matrix(degrees), center, shift)
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


def rotation_matrix(degrees: float) -> Array:
    """Return the (2, 2) matrix that turns an image against the clock; its y axis points down."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cosine, sine], [-sine, cosine]])


def shear_matrix(degrees: float) -> Array:
    """Return the (2, 2) matrix that leans the y axis."""
    return np.array([[1.0, math.sin(math.radians(degrees))], [0.0, math.cos(math.radians(degrees))]])


def shift_matrix(dx: float, dy: float) -> Array:
    """Return the (2, 3) matrix that shifts by (dx, dy) pixels."""
    return np.array([[1.0, 0.0, dx], [0.0, 1.0, dy]])


def about(linear: Array, center: Array, shift: Sequence[float] = (0.0, 0.0)) -> Array:
    """Return the (2, 3) matrix that applies ``linear`` (2, 2) about ``center`` (x, y), and then a shift."""
    return np.column_stack([linear, center - linear @ center + np.asarray(shift)])


def from_centers(matrix: Array) -> Array:
    """Return a (2, 3) matrix as OpenCV counts: from the center of the first pixel instead of its corner."""
    linear = matrix[:, :2]
    half = np.array([0.5, 0.5])
    return np.column_stack([linear, matrix[:, 2] + linear @ half - half])


def center_of(img: Array) -> Array:
    """Return the center (x, y) of an image."""
    return np.array([img.shape[1] / 2, img.shape[0] / 2])
