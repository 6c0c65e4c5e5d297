"""Crops of a fixed size, and cutout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ziggurat.dataflow.imgaug.arguments import size_of, span
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, colour_of
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import PixelTransform, Transform

__all__ = ["CenterCrop", "CropTransform", "CutoutTransform", "RandomCrop", "RandomCutout", "check_crop"]


class CropTransform(Transform):
    """Cuts out a part. The result is a view of the image that it was given.

    Args:
        y0: first row.
        x0: first column.
        h: height of the part in pixels.
        w: width of the part in pixels.
    """

    def __init__(self, y0: int, x0: int, h: int, w: int) -> None:
        self.y0 = y0
        self.x0 = x0
        self.h = h
        self.w = w

    def apply_image(self, img: Array) -> Array:
        if min(self.y0, self.x0) < 0 or self.y0 + self.h > img.shape[0] or self.x0 + self.w > img.shape[1]:
            raise ImageError(
                "A part that is cut out lies inside the image.",
                received=f"rows {self.y0} to {self.y0 + self.h} and columns {self.x0} to {self.x0 + self.w} "
                f"of an image of {img.shape[0]} x {img.shape[1]}",
                advice="Give all images and masks of a datapoint the same size.",
            )
        return img[self.y0 : self.y0 + self.h, self.x0 : self.x0 + self.w]

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        return points - np.array([self.x0, self.y0], dtype=points.dtype)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        return self.apply_image(mask)


class RandomCrop(ImageAugmentor):
    """Cuts out a part of a fixed size at a random place, all places equally likely.

    Args:
        crop_shape: (height, width) in pixels, or one number for a square.
    """

    def __init__(self, crop_shape: int | Sequence[int]) -> None:
        self.crop_shape = size_of(crop_shape, "crop_shape")

    def get_transform(self, img: Array) -> Transform:
        height, width = check_crop(img, self.crop_shape, self)
        y0 = int(self.rng.randint(img.shape[0] - height + 1))
        x0 = int(self.rng.randint(img.shape[1] - width + 1))
        return CropTransform(y0, x0, height, width)


class CenterCrop(ImageAugmentor):
    """Cuts a part of a fixed size out of the center.

    Args:
        crop_shape: (height, width) in pixels, or one number for a square.
    """

    def __init__(self, crop_shape: int | Sequence[int]) -> None:
        self.crop_shape = size_of(crop_shape, "crop_shape")

    def get_transform(self, img: Array) -> Transform:
        height, width = check_crop(img, self.crop_shape, self)
        return CropTransform((img.shape[0] - height) // 2, (img.shape[1] - width) // 2, height, width)


class CutoutTransform(PixelTransform):
    """Covers a rectangle; labels stay.

    Args:
        y0: first row.
        x0: first column.
        h: height of the rectangle in pixels.
        w: width of the rectangle in pixels.
        fill: its color: one number, or one for each channel.
    """

    def __init__(self, y0: int, x0: int, h: int, w: int, fill: float | Sequence[float] = 0.0) -> None:
        self.y0 = y0
        self.x0 = x0
        self.h = h
        self.w = w
        self.fill = fill

    def apply_image(self, img: Array) -> Array:
        colour = colour_of(self.fill, channels_of(img))
        covered = img.copy()
        covered[self.y0 : self.y0 + self.h, self.x0 : self.x0 + self.w] = colour if img.ndim == 3 else colour[0]
        return covered


class RandomCutout(ImageAugmentor):
    """Covers a rectangle at a random place (DeVries and Taylor, "Improved regularization of CNNs with cutout", 2017).

    Args:
        h_range: height of the rectangle in pixels, or (least, most), both included. It is no higher than the image.
        w_range: its width in pixels, likewise.
        fill: its color: one number, or one for each channel.
    """

    def __init__(
        self, h_range: int | Sequence[int], w_range: int | Sequence[int], fill: float | Sequence[float] = 0.0
    ) -> None:
        self.h_range = span(h_range, "h_range")
        self.w_range = span(w_range, "w_range")
        self.fill = fill

    def get_transform(self, img: Array) -> Transform:
        height = min(int(self.rng.randint(self.h_range[0], self.h_range[1] + 1)), img.shape[0])
        width = min(int(self.rng.randint(self.w_range[0], self.w_range[1] + 1)), img.shape[1])
        y0 = int(self.rng.randint(img.shape[0] - height + 1))
        x0 = int(self.rng.randint(img.shape[1] - width + 1))
        return CutoutTransform(y0, x0, height, width, self.fill)


def check_crop(img: Array, shape: tuple[int, int], augmentor: object) -> tuple[int, int]:
    """Return ``shape`` where it fits into the image.

    Raises:
        ImageError: where the image is too small.
    """
    if img.shape[0] < shape[0] or img.shape[1] < shape[1]:
        raise ImageError(
            f"{type(augmentor).__name__} needs images at least as large as the part that it cuts out.",
            received=f"{img.shape[0]} x {img.shape[1]} (height x width) for a part of {shape[0]} x {shape[1]}",
            advice="Put a `ResizeShortestEdge` or a `CenterPaste` before it.",
        )
    return shape
