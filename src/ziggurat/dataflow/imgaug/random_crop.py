"""Crops of a random size: by side lengths, or by area and aspect ratio with resizing to a fixed size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2

from ziggurat.dataflow.imgaug.arguments import positive, ranged, size_of
from ziggurat.dataflow.imgaug.base import ImageAugmentor
from ziggurat.dataflow.imgaug.crop import CropTransform, check_crop
from ziggurat.dataflow.imgaug.images import Array, ImageError
from ziggurat.dataflow.imgaug.resize import ResizeTransform
from ziggurat.dataflow.imgaug.transform import Transform
from ziggurat.dataflow.imgaug.transform_list import TransformList
from ziggurat.errors import UsageError

__all__ = ["GoogleNetRandomCropAndResize", "RandomCropRandomShape", "RandomResizedCrop"]


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
                "`max_aspect_ratio` is the longer side by the shorter one: at least 1.",
                received=max_aspect_ratio,
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
