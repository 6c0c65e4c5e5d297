"""Affine warp of an image and its labels by a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.images import (
    Array,
    carried,
    channels_of,
    check_image,
    check_size,
    colour_of,
    in_fours,
    move,
)
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.matrices import from_centres
from ziggurat.dataflow.imgaug.transform import Transform

__all__ = ["WarpAffineTransform", "warp_in_place"]


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
        colour = colour_of(self.border_value, channels_of(img))
        return in_fours(img, lambda part, channels: self._warped(part, self.interp, colour[channels]))

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        return (points @ self.matrix[:, :2].T + self.matrix[:, 2]).astype(points.dtype, copy=False)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        check_size(mask, *self.before, self)
        colour = (carried(fill, mask.dtype),) * 4
        return move(mask, lambda part: self._warped(part, cv2.INTER_NEAREST, colour))

    def _warped(self, img: Array, interp: int, colour: Sequence[float]) -> Array:
        matrix = from_centres(self.matrix)
        size = (self.after[1], self.after[0])
        return cv2.warpAffine(img, matrix, size, flags=interp, borderMode=self.border, borderValue=tuple(colour))


def warp_in_place(
    img: Array, matrix: Array, interp: int, border: int, border_value: float | Sequence[float]
) -> WarpAffineTransform:
    """Return the warp of ``img`` by a matrix whose result has the size of ``img``."""
    size = (img.shape[0], img.shape[1])
    return WarpAffineTransform(matrix, size, size, interp, border=border, border_value=border_value)
