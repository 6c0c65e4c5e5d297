"""Small data for the examples: images of shapes that are drawn here."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow import BatchData, DataFlow, RNGDataFlow

__all__ = ["Shapes", "batches"]

CLASSES = ("disk", "ring", "square", "cross")


class Shapes(RNGDataFlow):
    """[image: (size, size, 3) uint8, label: int32] of colored shapes on noise, other ones in every pass.

    Args:
        count: images in a pass.
        size: height and width.
        outlines: give [outline: (size, size, 3) uint8, image] in place of image and label.
    """

    def __init__(self, count: int, size: int = 32, *, outlines: bool = False) -> None:
        self.count = count
        self.size = size
        self.outlines = outlines

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Any:
        for _ in range(self.count):
            label = int(self.rng.randint(len(CLASSES)))
            image, outline = self._drawn(CLASSES[label])
            yield [outline, image] if self.outlines else [image, np.int32(label)]

    def _drawn(self, shape: str) -> tuple[np.ndarray, np.ndarray]:
        size, random = self.size, self.rng
        image = random.randint(0, 80, (size, size, 3)).astype(np.uint8)
        x, y = (int(random.randint(size // 3, size - size // 3)) for _ in range(2))
        radius = int(random.randint(size // 6, size // 4))
        color = [int(value) for value in random.randint(120, 256, 3)]
        mask = np.zeros((size, size), np.uint8)
        if shape in ("disk", "ring"):
            cv2.circle(mask, (x, y), radius, 255, -1 if shape == "disk" else max(2, radius // 3))
        elif shape == "square":
            cv2.rectangle(mask, (x - radius, y - radius), (x + radius, y + radius), 255, -1)
        else:
            cv2.line(mask, (x - radius, y), (x + radius, y), 255, max(2, radius // 3))
            cv2.line(mask, (x, y - radius), (x, y + radius), 255, max(2, radius // 3))
        image[mask > 0] = color
        outline = cv2.Canny(mask, 50, 150)
        return image, np.repeat(outline[:, :, None], 3, axis=2)


def batches(flow: DataFlow, size: int, *, remainder: bool = False, seed: int = 1) -> Any:
    """Return batches of a flow, with a seed that decides every random number of it."""
    return BatchData(flow, size, remainder=remainder).seed(seed)
