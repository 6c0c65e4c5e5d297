"""Resizing to a fixed size (squash, crop, fill, half-crop) or by the shortest edge.

OpenCV scales whole images, edge to edge, as this package's pixel convention says. ``interp`` is one of OpenCV's
numbers: 1 (``cv2.INTER_LINEAR``) by default. ``cv2.INTER_AREA`` is better where images shrink to less than half
(where a side grows, it is linear).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.arguments import size_of
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.crop import CropTransform
from ziggurat.dataflow.imgaug.images import Array, check_image, check_size, like, move
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.paste import BackgroundFiller, NoiseBackgroundFiller, PasteTransform
from ziggurat.dataflow.imgaug.randomness import draw_seed
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.imgaug.transform_list import TransformList
from ziggurat.errors import UnknownNameError

__all__ = ["Resize", "ResizeMode", "ResizeShortestEdge", "ResizeTransform"]

ResizeMode = Literal["squash", "crop", "fill", "half_crop"]


class ResizeTransform(Transform):
    """Scales an image to a size.

    Args:
        h: height in pixels, before.
        w: width in pixels, before.
        new_h: height in pixels, after.
        new_w: width in pixels, after.
        interp: OpenCV's number of the interpolation; masks take the nearest pixel.
    """

    def __init__(self, h: int, w: int, new_h: int, new_w: int, interp: int = cv2.INTER_LINEAR) -> None:
        self.h = h
        self.w = w
        self.new_h = new_h
        self.new_w = new_w
        self.interp = interp

    def apply_image(self, img: Array) -> Array:
        check_image(img, by="ResizeTransform")
        check_size(img, self.h, self.w, self)
        if (self.h, self.w) == (self.new_h, self.new_w):
            return img
        # OpenCV's area interpolation is for shrinking: where a side grows, it moves the image by a part of a pixel.
        grows = self.new_h > self.h or self.new_w > self.w
        interp = cv2.INTER_LINEAR if grows and self.interp == cv2.INTER_AREA else self.interp
        return like(cv2.resize(img, (self.new_w, self.new_h), interpolation=interp), img)

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        return points * np.array([self.new_w / self.w, self.new_h / self.h], dtype=points.dtype)

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        check_size(mask, self.h, self.w, self)
        if (self.h, self.w) == (self.new_h, self.new_w):
            return mask
        size = (self.new_w, self.new_h)
        return move(mask, lambda part: cv2.resize(part, size, interpolation=cv2.INTER_NEAREST_EXACT))


class Resize(ImageAugmentor):
    """Scales to a fixed size, in one of the four ways of DIGITS.

    Args:
        shape: (height, width) in pixels, or one number for a square.
        interp: OpenCV's number of the interpolation.
        mode: ``"squash"`` ignores the aspect ratio. ``"crop"`` keeps it, covers the size and cuts off what is too much,
            both sides alike. ``"fill"`` keeps it, fits in and fills both sides. ``"half_crop"`` keeps it and does half
            of both.
        background_filler: makes what is filled; None: noise, drawn anew for each image.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        interp: int = cv2.INTER_LINEAR,
        mode: ResizeMode = "squash",
        background_filler: BackgroundFiller | None = None,
    ) -> None:
        if mode not in get_args(ResizeMode):
            raise UnknownNameError("mode of `Resize`", str(mode), get_args(ResizeMode))
        self.shape = size_of(shape, "shape")
        self.interp = interp
        self.mode = mode
        self.background_filler = background_filler

    def get_transform(self, img: Array) -> Transform:
        h, w = img.shape[:2]
        scaled = self._scaled_size(h, w)
        steps: list[Transform] = [ResizeTransform(h, w, *scaled, self.interp)]
        part = (min(scaled[0], self.shape[0]), min(scaled[1], self.shape[1]))
        if part != scaled:
            steps.append(CropTransform((scaled[0] - part[0]) // 2, (scaled[1] - part[1]) // 2, *part))
        if part != self.shape:
            filler = self.background_filler or NoiseBackgroundFiller(draw_seed(self.rng))
            y0, x0 = (self.shape[0] - part[0]) // 2, (self.shape[1] - part[1]) // 2
            steps.append(PasteTransform(y0, x0, self.shape, filler))
        return steps[0] if len(steps) == 1 else TransformList(steps)

    def _scaled_size(self, h: int, w: int) -> tuple[int, int]:
        """Return the size of the whole image after scaling."""
        if self.mode == "squash":
            return self.shape
        ratios = (h / self.shape[0], w / self.shape[1])
        ratio = {"crop": min(ratios), "fill": max(ratios), "half_crop": sum(ratios) / 2}[self.mode]
        sides = [max(1, round(side / ratio)) for side in (h, w)]
        if self.mode != "half_crop":  # the side that decides fits to the pixel, whatever the rounding
            decides = ratios.index(ratio)
            sides[decides] = self.shape[decides]
        return sides[0], sides[1]


class ResizeShortestEdge(ImageAugmentor):
    """Scales so that the shorter side has a given length; the aspect ratio is kept.

    Args:
        size: length of the shorter side in pixels.
        interp: OpenCV's number of the interpolation.
    """

    def __init__(self, size: int, interp: int = cv2.INTER_LINEAR) -> None:
        self.size = size_of(size, "size")[0]
        self.interp = interp

    def get_transform(self, img: Array) -> Transform:
        h, w = img.shape[:2]
        longer = max(1, int(max(h, w) * self.size / min(h, w) + 0.5))
        new_h, new_w = (self.size, longer) if h <= w else (longer, self.size)
        return ResizeTransform(h, w, new_h, new_w, self.interp)
