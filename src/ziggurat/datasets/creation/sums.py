"""Integer sums for the mean image, so that the order of addition does not change the result."""

from __future__ import annotations

from typing import Any, Final, Self

import cv2
import numpy as np

__all__ = ["PictureSums"]

_MOST_CHANNELS: Final = 4  # that OpenCV sums up at once


class PictureSums:
    """Sums of images, for the mean image (while all have one shape) and the mean pixel."""

    def __init__(self) -> None:
        self.count = 0
        self.pixels = 0
        self.channel_sums: np.ndarray | None = None
        """(C) int64; None before the first image, or where channels differ."""
        self._picture_sum: np.ndarray | None = None  # of whole numbers below 2**53, which float64 holds exactly

    @property
    def picture_sum(self) -> np.ndarray | None:
        """(H, W, C) int64; None before the first image, or where shapes differ."""
        return None if self._picture_sum is None else self._picture_sum.astype(np.int64)

    def add(self, picture: np.ndarray) -> None:
        """Add an image, (H, W, C) uint8."""
        if self.count == 0:
            self._picture_sum = np.zeros(picture.shape, np.float64)
            self.channel_sums = np.zeros(picture.shape[2], np.int64)
        pixels = picture.shape[0] * picture.shape[1]
        self._merge(1, pixels, _channel_sums(picture), picture)

    def add_all(self, other: PictureSums) -> None:
        """Add the sums of other images."""
        if not other.count:
            return
        if self.count == 0:
            self._picture_sum = None if other._picture_sum is None else np.zeros_like(other._picture_sum)
            self.channel_sums = None if other.channel_sums is None else np.zeros_like(other.channel_sums)
        self._merge(other.count, other.pixels, other.channel_sums, other._picture_sum)

    def mean_picture(self) -> np.ndarray | None:
        """Return (H, W, C) float32, or None where shapes differ or there is no image."""
        return None if self._picture_sum is None else (self._picture_sum / self.count).astype(np.float32)

    def mean_pixel(self) -> tuple[float, ...]:
        """Return one number a channel, or nothing where channels differ or there is no image."""
        if self.channel_sums is None or not self.pixels:
            return ()
        return tuple(float(value) for value in self.channel_sums / self.pixels)

    def as_parts(self) -> dict[str, Any]:
        """Return plain values."""
        return {"count": self.count, "pixels": self.pixels, "channels": self.channel_sums, "picture": self.picture_sum}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """Return the sums that ``as_parts`` gave."""
        sums = cls()
        sums.count, sums.pixels = parts["count"], parts["pixels"]
        picture = parts["picture"]
        sums.channel_sums = parts["channels"]
        sums._picture_sum = None if picture is None else picture.astype(np.float64)
        return sums

    def _merge(self, count: int, pixels: int, channel_sums: np.ndarray | None, picture: np.ndarray | None) -> None:
        self.count += count
        self.pixels += pixels
        if self.channel_sums is not None:
            same = channel_sums is not None and channel_sums.shape == self.channel_sums.shape
            self.channel_sums = self.channel_sums + channel_sums if same else None
        if self._picture_sum is None:
            return
        if picture is None or picture.shape != self._picture_sum.shape:
            self._picture_sum = None
        else:
            _add_onto(self._picture_sum, picture)


def _channel_sums(picture: np.ndarray) -> np.ndarray:
    channels = picture.shape[2]
    if channels > _MOST_CHANNELS:
        return picture.reshape(-1, channels).sum(axis=0, dtype=np.int64)
    return np.array(cv2.sumElems(picture)[:channels]).astype(np.int64)


def _add_onto(total: np.ndarray, picture: np.ndarray) -> None:
    """Add (H, W, C) uint8 or float64 onto (H, W, C) float64, which is nearly three times as fast as onto int64."""
    if picture.dtype == np.uint8:
        cv2.accumulate(picture.reshape(len(picture), -1), total.reshape(len(total), -1))
    else:
        total += picture
