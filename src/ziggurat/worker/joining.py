"""Joining of the images of training batches with all of their objects (mosaic, Mixup) for detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.mixing import blended
from ziggurat.tasks.detection_arrays import COUNT, DROPPED, kept_rows

__all__ = ["JoinObjects", "Joint", "joined_rows", "mosaic"]

_PARTS: Final = 4
_MIDDLE: Final = (0.3, 0.7)
_SCALES: Final = (0.7, 1.0)
"""The least is the largest share of a side that a part can have, so that every part is full."""


@dataclass(frozen=True, kw_only=True)
class Joint:
    """How one sample of a batch is joined with others of it.

    Args:
        places: in the batch, of the images that are joined, its own first; its own alone where nothing is done.
        middle: (y, x) px where the four parts of a mosaic meet.
        scales: of each part.
        share: of its own image, where two are blended; 1 for a mosaic.
    """

    places: tuple[int, ...]
    middle: tuple[int, int] = (0, 0)
    scales: tuple[float, ...] = ()
    share: float = 1.0

    def join(self, images: Sequence[np.ndarray], rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the joint image and its objects.

        Args:
            images: (H, W, C) of each of ``places``.
            rows: (M + 1, 16) of each, see ``ziggurat.tasks.detection_arrays``.
        """
        if len(self.places) == _PARTS:
            return mosaic(images, rows, self.middle, self.scales)
        if len(self.places) == 1:
            return images[0], rows[0]
        return blended(images[0][None], images[1][None], self.share)[0], joined_rows(rows)


class JoinObjects:
    """Makes mosaics and blends of the images of a batch ``[x, y]``, with the objects of all that are joined.

    A mosaic has a part of four images, each at 0.7 to 1 of its size, which meet in a point (Bochkovskiy et al.,
    "YOLOv4", 2020). A blend adds up two images (Zhang et al., "mixup", ICLR 2018; with boxes as in YOLOX, Ge et al.,
    2021). Objects of which less than a quarter is left, and those beyond the rows of a target, are counted as dropped.

    Args:
        mosaic: share of samples that become mosaics, 0 to 1.
        mixup: shares of blends are drawn from Beta(mixup, mixup); 0 for none. Mosaics are not blended.
    """

    def __init__(self, mosaic: float, mixup: float) -> None:
        self._mosaic = mosaic
        self._mixup = mixup

    def draw(self, count: int, height: int, width: int, rng: np.random.RandomState) -> list[Joint]:
        """Return how each sample of a batch is joined.

        Args:
            count: of samples.
            height: of the images in px.
            width: likewise.
            rng: of the batch.
        """
        is_mosaic = rng.random_sample(count) < self._mosaic
        others = rng.randint(0, count, (count, _PARTS - 1))
        middles = np.rint(rng.uniform(*_MIDDLE, (count, 2)) * (height, width)).astype(int).tolist()
        scales = rng.uniform(*_SCALES, (count, _PARTS)).tolist()
        shares = rng.beta(self._mixup, self._mixup, count) if self._mixup else np.ones(count)
        found = []
        for place in range(count):
            if is_mosaic[place]:
                y, x = middles[place]
                places = (place, *others[place].tolist())
                found.append(Joint(places=places, middle=(y, x), scales=tuple(scales[place])))
            elif self._mixup:
                share = float(shares[place])
                found.append(Joint(places=(place, int(others[place, 0])), share=max(share, 1.0 - share)))
            else:
                found.append(Joint(places=(place,)))
        return found

    def __call__(self, batch: Any, rng: np.random.RandomState) -> list[np.ndarray]:
        """Return the batch of joint images."""
        images, y = batch
        count, height, width, _ = images.shape
        kind = np.float32 if self._mixup else images.dtype
        joint, targets = np.empty(images.shape, kind), np.empty_like(y)
        for place, each in enumerate(self.draw(count, height, width, rng)):
            chosen = list(each.places)
            joint[place], targets[place, 0] = each.join([images[one] for one in chosen], [y[one, 0] for one in chosen])
        return [joint, targets]


def mosaic(
    images: Sequence[np.ndarray], rows: Sequence[np.ndarray], middle: tuple[int, int], scales: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return one image of parts of four, and the objects in it.

    Args:
        images: four of one size (H, W, C).
        rows: (M + 1, 16) of each.
        middle: (y, x) px where the parts meet: top left, top right, bottom left, bottom right.
        scales: of each part, so large that it fills its place.
    """
    height, width = images[0].shape[:2]
    found, parts = np.empty_like(images[0]), []
    for number, (image, own, scale) in enumerate(zip(images, rows, scales, strict=True)):
        below, right = divmod(number, 2)
        top, bottom = (middle[0], height) if below else (0, middle[0])
        left, end = (middle[1], width) if right else (0, middle[1])
        size = (max(round(scale * height), bottom - top), max(round(scale * width), end - left))
        resized = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR).reshape(*size, -1)
        # The corner of each image that is nearest to the middle stays there.
        start = (0 if below else size[0] - (bottom - top), 0 if right else size[1] - (end - left))
        found[top:bottom, left:end] = resized[start[0] : start[0] + bottom - top, start[1] : start[1] + end - left]
        parts.append(_part(own, (size[0] / height, size[1] / width), start, (top, left, bottom, end)))
    return found, joined_rows(parts)


def joined_rows(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the objects of several images as those of one, (M + 1, 16); those without a row are counted as dropped.

    Args:
        parts: (M + 1, 16) of each, in px of the joint image; the header of the first one stays.
    """
    most = len(parts[0]) - 1
    bodies = np.concatenate([each[1 : 1 + int(each[0, COUNT])] for each in parts])
    found = np.zeros_like(parts[0])
    found[0] = parts[0][0]
    found[1 : 1 + len(bodies)] = bodies[:most]
    found[0, COUNT] = min(most, len(bodies))
    found[0, DROPPED] = sum(each[0, DROPPED] for each in parts) + max(0, len(bodies) - most)
    return found


def _part(
    rows: np.ndarray, scale: tuple[float, float], start: tuple[int, int], place: tuple[int, int, int, int]
) -> np.ndarray:
    """Return the objects of an image in px of the mosaic, clipped to its part.

    Args:
        rows: (M + 1, 16).
        scale: (y, x) of the image.
        start: (y, x) px of the scaled image where the part begins.
        place: top, left, bottom and right of the part in the mosaic.
    """
    top, left, bottom, right = place
    moved = rows.copy()
    body = moved[1 : 1 + int(rows[0, COUNT])]
    body[:, :4] *= (scale[1], scale[0], scale[1], scale[0])
    body[:, :2] -= (start[1], start[0])
    kept = kept_rows(moved, (bottom - top, right - left), len(rows) - 1)
    kept[1 : 1 + int(kept[0, COUNT]), :2] += (left, top)
    return kept
