"""Flips, transposition and 90-degree rotations, which move pixels without interpolation."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ziggurat.dataflow.imgaug.base import ImageAugmentor, fraction
from ziggurat.dataflow.imgaug.images import Array, check_size, move
from ziggurat.dataflow.imgaug.labels import as_points
from ziggurat.dataflow.imgaug.transform import NoOpTransform, Transform
from ziggurat.errors import UsageError

__all__ = ["Flip", "FlipTransform", "Rotation90", "Rotation90Transform", "Transpose", "TransposeTransform"]

_TURNS = {1: cv2.ROTATE_90_COUNTERCLOCKWISE, 2: cv2.ROTATE_180, 3: cv2.ROTATE_90_CLOCKWISE}


class _Moving(Transform):
    """A transform that does the same to images and masks."""

    def apply_mask(self, mask: Array, fill: int = 0) -> Array:
        return self.apply_image(mask)


class FlipTransform(_Moving):
    """Mirrors an image: ``x`` becomes ``w - x``, or ``y`` becomes ``h - y``.

    Args:
        h: height of the image in pixels.
        w: width of the image in pixels.
        horiz: left and right change places; else top and bottom do.
    """

    def __init__(self, h: int, w: int, horiz: bool = True) -> None:
        self.h = h
        self.w = w
        self.horiz = horiz

    @property
    def mirrors(self) -> bool:
        return True

    def apply_image(self, img: Array) -> Array:
        check_size(img, self.h, self.w, self)
        code = 1 if self.horiz else 0
        return move(img, lambda part: cv2.flip(part, code))

    def apply_coords(self, coords: Array) -> Array:
        moved = as_points(coords).copy()
        axis, length = (0, self.w) if self.horiz else (1, self.h)
        moved[:, axis] = length - moved[:, axis]
        return moved


class TransposeTransform(_Moving):
    """Mirrors an image at its diagonal: x and y change places."""

    @property
    def mirrors(self) -> bool:
        return True

    def apply_image(self, img: Array) -> Array:
        return move(img, cv2.transpose)

    def apply_coords(self, coords: Array) -> Array:
        return np.ascontiguousarray(as_points(coords)[:, ::-1])


class Rotation90Transform(_Moving):
    """Turns an image by quarters, against the clock.

    Args:
        h: height of the image in pixels, before.
        w: width of the image in pixels, before.
        quarter_turns: how many, from 0 to 3.
    """

    def __init__(self, h: int, w: int, quarter_turns: int) -> None:
        self.h = h
        self.w = w
        self.quarter_turns = quarter_turns

    def apply_image(self, img: Array) -> Array:
        check_size(img, self.h, self.w, self)
        if self.quarter_turns == 0:
            return img
        code = _TURNS[self.quarter_turns]
        return move(img, lambda part: cv2.rotate(part, code))

    def apply_coords(self, coords: Array) -> Array:
        points = as_points(coords)
        x, y = points[:, 0], points[:, 1]
        places = {0: (x, y), 1: (y, self.w - x), 2: (self.w - x, self.h - y), 3: (self.h - y, x)}
        return np.stack(places[self.quarter_turns], axis=1)


class Flip(ImageAugmentor):
    """Mirrors with a probability.

    Args:
        horiz: left and right change places.
        vert: top and bottom change places. Exactly one of both is chosen; for both, use two augmentors.
        prob: from 0 to 1.
    """

    def __init__(self, horiz: bool = False, vert: bool = False, prob: float = 0.5) -> None:
        if bool(horiz) == bool(vert):
            raise UsageError(
                "`Flip` is either horizontal or vertical.",
                received=f"horiz={horiz}, vert={vert}",
                advice="Set one of them; for both, use two augmentors.",
            )
        self.horiz = bool(horiz)
        self.vert = bool(vert)
        self.prob = fraction(prob, "prob")

    def get_transform(self, img: Array) -> Transform:
        if self.rng.random_sample() >= self.prob:
            return NoOpTransform()
        return FlipTransform(img.shape[0], img.shape[1], self.horiz)


class Transpose(ImageAugmentor):
    """Swaps x and y with a probability.

    Args:
        prob: from 0 to 1.
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = fraction(prob, "prob")

    def get_transform(self, img: Array) -> Transform:
        return TransposeTransform() if self.rng.random_sample() < self.prob else NoOpTransform()


class Rotation90(ImageAugmentor):
    """Turns by a random number of quarters, against the clock; a quarter swaps height and width.

    Args:
        quarter_turns: the numbers to choose from, all equally likely: ``(0, 1, 3)`` for 0° and ±90°, ``(0, 2)`` for 0°
            and 180°.
    """

    def __init__(self, quarter_turns: Sequence[int] = (0, 1, 2, 3)) -> None:
        self.quarter_turns = tuple(turns % 4 for turns in quarter_turns)
        if not self.quarter_turns:
            raise UsageError(
                "`quarter_turns` names at least one turn.", received="none", advice="Choose from 0, 1, 2 and 3."
            )

    def get_transform(self, img: Array) -> Transform:
        turns = self.quarter_turns[self.rng.randint(len(self.quarter_turns))]
        return Rotation90Transform(img.shape[0], img.shape[1], turns)
