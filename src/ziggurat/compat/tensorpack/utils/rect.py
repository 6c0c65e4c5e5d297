"""Boxes by two corners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

__all__ = ["FloatBox", "IntBox"]


@dataclass
class _Box:
    x1: float
    y1: float
    x2: float
    y2: float

    def copy(self) -> Self:
        """Return a copy."""
        return replace(self)

    def area(self) -> float:
        """Return width times height."""
        return self.w * self.h

    def is_box(self) -> bool:
        """Return whether width and height are above 0."""
        return self.w > 0 and self.h > 0

    @property
    def w(self) -> float:
        """The width."""
        return self.x2 - self.x1

    @property
    def h(self) -> float:
        """The height."""
        return self.y2 - self.y1


class IntBox(_Box):
    """A box of whole pixels; both corners belong to it.

    Args:
        x1: left pixel.
        y1: upper pixel.
        x2: right pixel.
        y2: lower pixel.
    """

    @property
    def w(self) -> float:
        """The width, in pixels."""
        return self.x2 - self.x1 + 1

    @property
    def h(self) -> float:
        """The height, in pixels."""
        return self.y2 - self.y1 + 1

    def is_valid_box(self, shape: Sequence[int]) -> bool:
        """Return whether it is a box inside an image of (height, width)."""
        return min(self.x1, self.y1) >= 0 and self.is_box() and self.x2 < shape[1] and self.y2 < shape[0]

    def clip_by_shape(self, shape: Sequence[int]) -> None:
        """Move its corners into an image of (height, width)."""
        self.x1, self.x2 = (min(max(x, 0), shape[1] - 1) for x in (self.x1, self.x2))
        self.y1, self.y2 = (min(max(y, 0), shape[0] - 1) for y in (self.y1, self.y2))

    def roi(self, img: np.ndarray) -> np.ndarray:
        """Return the part of an image (H, W, ...) inside the box."""
        return img[int(self.y1) : int(self.y2) + 1, int(self.x1) : int(self.x2) + 1]


class FloatBox(_Box):
    """A box by the edges of pixels.

    Args:
        x1: left edge.
        y1: upper edge.
        x2: right edge.
        y2: lower edge.
    """

    @staticmethod
    def from_intbox(intbox: IntBox) -> FloatBox:
        """Return the same area, by its edges."""
        return FloatBox(float(intbox.x1), float(intbox.y1), intbox.x2 + 1.0, intbox.y2 + 1.0)

    def clip_by_shape(self, shape: Sequence[int]) -> None:
        """Move its corners into an image of (height, width)."""
        self.x1, self.x2 = (min(max(x, 0.0), float(shape[1])) for x in (self.x1, self.x2))
        self.y1, self.y2 = (min(max(y, 0.0), float(shape[0])) for y in (self.y1, self.y2))
