"""Crops of a fixed size, cutout, and pasting of an image on a larger canvas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, is_ours, size_of, span
from ziggurat.dataflow.imgaug.images import Array, ImageError, channels_of, color_of, fill_level
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import Parameterised, PixelTransform, Transform
from ziggurat.errors import UsageError

__all__ = [
    "BackgroundFiller",
    "CenterCrop",
    "CenterPaste",
    "ConstantBackgroundFiller",
    "CropTransform",
    "CutoutTransform",
    "NoiseBackgroundFiller",
    "PasteTransform",
    "RandomCrop",
    "RandomCutout",
    "RandomPaste",
    "check_crop",
]


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
        color = color_of(self.fill, channels_of(img))
        covered = img.copy()
        covered[self.y0 : self.y0 + self.h, self.x0 : self.x0 + self.w] = color if img.ndim == 3 else color[0]
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


class BackgroundFiller(Parameterised):
    """Base of what makes a canvas. A subclass defines ``fill``, and gives the same pixels for the same arguments."""

    def fill(self, background_shape: Sequence[int], img: Array) -> Array:
        """Return a canvas.

        Args:
            background_shape: (height, width) in pixels.
            img: what will be pasted: the canvas has its type and channels.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `fill`.")


class ConstantBackgroundFiller(BackgroundFiller):
    """A canvas of one color.

    Args:
        value: one number, or one for each channel.
    """

    def __init__(self, value: float | Sequence[float]) -> None:
        self.value = value

    def fill(self, background_shape: Sequence[int], img: Array) -> Array:
        """Return the canvas, (height, width) and the channels of ``img``."""
        channels = img.shape[2:]
        color = color_of(self.value, channels[0] if channels else 1)
        return np.full((*background_shape, *channels), color if channels else color[0], dtype=img.dtype)


class NoiseBackgroundFiller(BackgroundFiller):
    """A canvas of noise, each value uniform between black and white, as DIGITS fills it.

    Args:
        seed: decides the noise, in every version of NumPy.
        white_level: white in floating-point images; 255 in bytes, 65535 in ``uint16``.
    """

    def __init__(self, seed: int, white_level: float = 255.0) -> None:
        self.seed = seed
        self.white_level = white_level

    def fill(self, background_shape: Sequence[int], img: Array) -> Array:
        """Return the canvas, (height, width) and the channels of ``img``."""
        shape = (*background_shape, *img.shape[2:])
        rng = np.random.RandomState(self.seed)
        if img.dtype.kind == "u":
            return np.frombuffer(rng.bytes(int(np.prod(shape)) * img.itemsize), img.dtype).reshape(shape).copy()
        return (rng.random_sample(shape) * fill_level(img, self.white_level)).astype(img.dtype)


class PasteTransform(Transform):
    """Puts an image on a canvas.

    Args:
        y0: row of the canvas where the image begins.
        x0: column of the canvas where the image begins.
        background_shape: (height, width) of the canvas in pixels.
        background_filler: makes the canvas.
    """

    def __init__(
        self, y0: int, x0: int, background_shape: tuple[int, int], background_filler: BackgroundFiller
    ) -> None:
        self.y0 = y0
        self.x0 = x0
        self.background_shape = background_shape
        self.background_filler = background_filler

    def apply_image(self, img: Array) -> Array:
        canvas = self.background_filler.fill(self.background_shape, img)
        if canvas.shape != (*self.background_shape, *img.shape[2:]):
            raise UsageError(
                f"The background filler returned a canvas of shape {canvas.shape}, not of "
                f"{self.background_shape} with the channels of an image {img.shape}.",
                advice=f"Correct `{type(self.background_filler).__name__}.fill`.",
            )
        # A user's filler may keep its canvas.
        return self._pasted(img, canvas if is_ours(self.background_filler) else canvas.copy())

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        return points + np.array([self.x0, self.y0], dtype=points.dtype)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        return self._pasted(mask, np.full((*self.background_shape, *mask.shape[2:]), fill, dtype=mask.dtype))

    def _pasted(self, image: Array, canvas: Array) -> Array:
        _check_paste(image, self.background_shape, self)
        canvas[self.y0 : self.y0 + image.shape[0], self.x0 : self.x0 + image.shape[1]] = image
        return canvas


class CenterPaste(ImageAugmentor):
    """Puts the image in the center of a canvas.

    Args:
        background_shape: (height, width) of the canvas in pixels, or one number for a square.
        background_filler: makes the canvas; None: black.
    """

    def __init__(
        self, background_shape: int | Sequence[int], background_filler: BackgroundFiller | None = None
    ) -> None:
        self.background_shape = size_of(background_shape, "background_shape")
        self.background_filler = background_filler or ConstantBackgroundFiller(0)

    def get_transform(self, img: Array) -> Transform:
        room_y, room_x = _check_paste(img, self.background_shape, self)
        y0, x0 = self._place(room_y, room_x)
        return PasteTransform(y0, x0, self.background_shape, self.background_filler)

    def _place(self, room_y: int, room_x: int) -> tuple[int, int]:
        return room_y // 2, room_x // 2


class RandomPaste(CenterPaste):
    """Puts the image at a random place of a canvas, all places equally likely.

    Args:
        background_shape: (height, width) of the canvas in pixels, or one number for a square.
        background_filler: makes the canvas; None: black.
    """

    def _place(self, room_y: int, room_x: int) -> tuple[int, int]:
        return int(self.rng.randint(room_y + 1)), int(self.rng.randint(room_x + 1))


def _check_paste(img: Array, shape: tuple[int, int], by: Any) -> tuple[int, int]:
    """Return how much higher and wider the canvas is."""
    room_y, room_x = shape[0] - img.shape[0], shape[1] - img.shape[1]
    if room_y < 0 or room_x < 0:
        raise ImageError(
            f"An image of {img.shape[0]} x {img.shape[1]} (height x width) does not fit on the canvas of "
            f"{type(by).__name__}, {shape[0]} x {shape[1]}.",
            advice="Put a `Resize` before it, or make the canvas larger.",
        )
    return room_y, room_x
