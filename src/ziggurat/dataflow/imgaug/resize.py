"""Resizing to a fixed size, by the shortest edge, and at random; crops of a random size.

OpenCV scales whole images, edge to edge, as this package's pixel convention says. ``interp`` is one of OpenCV's
numbers: 1 (``cv2.INTER_LINEAR``) by default. ``cv2.INTER_AREA`` is better where images shrink to less than half
(where a side grows, it is linear).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, draw_seed, positive, ranged, size_of
from ziggurat.dataflow.imgaug.crop import (
    BackgroundFiller,
    CropTransform,
    NoiseBackgroundFiller,
    PasteTransform,
    check_crop,
)
from ziggurat.dataflow.imgaug.images import Array, ImageError, check_image, check_size, like, move
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import Transform, TransformList
from ziggurat.errors import UnknownNameError, UsageError

__all__ = [
    "GoogleNetRandomCropAndResize",
    "RandomCropRandomShape",
    "RandomResize",
    "RandomResizedCrop",
    "Resize",
    "ResizeMode",
    "ResizeShortestEdge",
    "ResizeTransform",
]

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


class RandomResize(ImageAugmentor):
    """Scales to a random size, with a limit to the change of the aspect ratio.

    Args:
        xrange: (low, high) of the width: two ints are pixels, else ratios to the present width.
        yrange: (low, high) of the height, likewise; None: that of the width.
        minimum: (width, height) in pixels that are not undercut.
        aspect_ratio_thres: largest relative change of width / height; 0 keeps the ratio and ignores ``yrange``.
        interp: OpenCV's number of the interpolation.
    """

    def __init__(
        self,
        xrange: Sequence[float],
        yrange: Sequence[float] | None = None,
        minimum: Sequence[int] = (0, 0),
        aspect_ratio_thres: float = 0.15,
        interp: int = cv2.INTER_LINEAR,
    ) -> None:
        self.xrange = ranged(xrange, "xrange", least=0)
        self.yrange = self.xrange if yrange is None else ranged(yrange, "yrange", least=0)
        self.minimum = (int(minimum[0]), int(minimum[1]))
        self.aspect_ratio_thres = positive(aspect_ratio_thres, "aspect_ratio_thres")
        self.interp = interp
        self._in_pixels = _are_ints(xrange)
        if yrange is not None and _are_ints(yrange) != self._in_pixels:
            raise UsageError(
                "`xrange` and `yrange` are both in pixels (two ints) or both ratios (floats).",
                received=f"xrange={tuple(xrange)}, yrange={tuple(yrange)}",
                advice="Write 1.0 instead of 1 where a ratio is meant.",
            )

    def get_transform(self, img: Array) -> Transform:
        h, w = img.shape[:2]
        width, height = self._drawn(h, w)
        new_w = max(1, int(max(width, self.minimum[0]) + 0.5))
        new_h = max(1, int(max(height, self.minimum[1]) + 0.5))
        return ResizeTransform(h, w, new_h, new_w, self.interp)

    def _drawn(self, h: int, w: int) -> tuple[float, float]:
        """Draw a width among those that have a permitted height, and then such a height."""
        unit_x, unit_y = (1, 1) if self._in_pixels else (w, h)
        widths = [limit * unit_x for limit in self.xrange]
        heights = [limit * unit_y for limit in self.yrange]
        change = self.aspect_ratio_thres
        if change == 0:
            width = self._rand_range(*widths)
            return width, width * h / w
        flattest, steepest = h / w / (1 + change), h / w / max(1 - change, 1e-9)  # heights for a width of 1
        low, high = max(widths[0], heights[0] / steepest), min(widths[1], heights[1] / flattest)
        if low > high:
            raise ImageError(
                "`RandomResize` needs a size in its ranges that keeps the aspect ratio within its limit.",
                received=f"an image of {h} x {w} (height x width) for {self}",
                advice="Widen `xrange` or `yrange`, or raise `aspect_ratio_thres`.",
            )
        width = self._rand_range(low, high)
        return width, self._rand_range(max(heights[0], width * flattest), min(heights[1], width * steepest))


def _are_ints(values: Sequence[float]) -> bool:
    return all(isinstance(value, int | np.integer) for value in values)


class RandomCropRandomShape(ImageAugmentor):
    """Cuts out a part of random sides at a random place; every limit may be reached.

    Args:
        wmin: least width in pixels.
        hmin: least height in pixels.
        wmax: most; None: the width of the image.
        hmax: most; None: the height of the image.
        max_aspect_ratio: largest ratio of the longer to the shorter side; None: any.
    """

    def __init__(
        self,
        wmin: int,
        hmin: int,
        wmax: int | None = None,
        hmax: int | None = None,
        max_aspect_ratio: float | None = None,
    ) -> None:
        self.hmin, self.wmin = size_of((hmin, wmin), "(hmin, wmin)")
        if (wmax is not None and wmax < wmin) or (hmax is not None and hmax < hmin):
            raise UsageError(
                "The largest part is not smaller than the smallest one.",
                received=f"width {wmin} to {wmax}, height {hmin} to {hmax}",
                advice="Give the larger number as `wmax` and `hmax`.",
            )
        self.wmax = wmax
        self.hmax = hmax
        self.max_aspect_ratio = None if max_aspect_ratio is None else positive(max_aspect_ratio, "max_aspect_ratio")
        if max_aspect_ratio is not None and max_aspect_ratio < 1:
            raise UsageError(
                f"`max_aspect_ratio` is {max_aspect_ratio}, below 1: it is the longer side divided by the shorter one.",
                advice="Give 1 for squares, or None for any ratio.",
            )

    def get_transform(self, img: Array) -> Transform:
        check_crop(img, (self.hmin, self.wmin), self)
        height, width = self._drawn(*img.shape[:2])
        y0 = int(self.rng.randint(img.shape[0] - height + 1))
        x0 = int(self.rng.randint(img.shape[1] - width + 1))
        return CropTransform(y0, x0, height, width)

    def _drawn(self, h: int, w: int) -> tuple[int, int]:
        """Draw a width that has a permitted height, and then such a height."""
        highest, widest = min(h, self.hmax or h), min(w, self.wmax or w)
        ratio = self.max_aspect_ratio or math.inf
        low, high = max(self.wmin, math.ceil(self.hmin / ratio)), widest
        if highest * ratio < high:
            high = math.floor(highest * ratio)
        if low > high:
            raise ImageError(
                "`RandomCropRandomShape` needs images that hold a part of a permitted shape.",
                received=f"{h} x {w} (height x width) for {self}",
                advice="Lower `wmin` and `hmin`, or raise `max_aspect_ratio`.",
            )
        width = int(self.rng.randint(low, high + 1))
        least = max(self.hmin, math.ceil(width / ratio))
        most = highest if width * ratio >= highest else math.floor(width * ratio)
        return int(self.rng.randint(least, most + 1)), width


class GoogleNetRandomCropAndResize(ImageAugmentor):
    """Cuts out a part of random area and aspect ratio and scales it to a fixed size.

    The crop of Szegedy et al., "Going deeper with convolutions" (CVPR 2015): the area is drawn first, then width /
    height, which is turned over in half of the cases. Where such a part does not fit in ten draws, it is the largest
    central part of the target's shape.

    Args:
        crop_area_fraction: (least, most) area of the part, as a fraction of the image's.
        aspect_ratio_range: (least, most) of width / height.
        target_shape: (height, width) of the result in pixels, or one number for a square.
        interp: OpenCV's number of the interpolation.
    """

    def __init__(
        self,
        crop_area_fraction: Sequence[float] = (0.08, 1.0),
        aspect_ratio_range: Sequence[float] = (0.75, 1.333),
        target_shape: int | Sequence[int] = 224,
        interp: int = cv2.INTER_LINEAR,
    ) -> None:
        self.crop_area_fraction = ranged(crop_area_fraction, "crop_area_fraction", least=0, most=1)
        self.aspect_ratio_range = ranged(aspect_ratio_range, "aspect_ratio_range", least=1e-6)
        self.target_shape = size_of(target_shape, "target_shape")
        self.interp = interp

    def get_transform(self, img: Array) -> Transform:
        y0, x0, height, width = self.draw_part(*img.shape[:2])
        resize = ResizeTransform(height, width, *self.target_shape, self.interp)
        return TransformList([CropTransform(y0, x0, height, width), resize])

    def draw_part(self, h: int, w: int) -> tuple[int, int, int, int]:
        """Draw (y0, x0, height, width) of the part in pixels, for an image of ``h`` x ``w``."""
        for _attempt in range(10):
            area = self._rand_range(*self.crop_area_fraction) * h * w
            aspect = self._rand_range(*self.aspect_ratio_range)
            width, height = int(math.sqrt(area * aspect) + 0.5), int(math.sqrt(area / aspect) + 0.5)
            if self.rng.random_sample() < 0.5:
                width, height = height, width
            if 0 < width <= w and 0 < height <= h:
                return int(self.rng.randint(h - height + 1)), int(self.rng.randint(w - width + 1)), height, width
        ratio = min(h / self.target_shape[0], w / self.target_shape[1])
        height, width = (min(limit, max(1, round(side * ratio))) for side, limit in zip(self.target_shape, (h, w)))
        return (h - height) // 2, (w - width) // 2, height, width


RandomResizedCrop = GoogleNetRandomCropAndResize
