"""Random-crop augmentation as users write it with OpenCV or Pillow, one image at a time."""

from __future__ import annotations

import io
import math
import random

import cv2
import numpy as np
from PIL import Image

__all__ = ["crop_opencv", "crop_pil", "draw_box"]

SIZE = 224


def draw_box(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return x, y, width, height of a box in an image of (width, height)."""
    width, height = size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(size)
    return (width - side) // 2, (height - side) // 2, side, side


def crop_opencv(data: np.ndarray) -> np.ndarray:
    """Return a crop (224, 224, 3) uint8, RGB, of a JPEG file."""
    cv2.setNumThreads(0)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
    assert image is not None
    x, y, w, h = draw_box((image.shape[1], image.shape[0]))
    crop = cv2.resize(image[y : y + h, x : x + w], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
    return cv2.flip(crop, 1) if random.random() < 0.5 else crop


def crop_pil(data: np.ndarray) -> np.ndarray:
    """Return the same with Pillow, as torchvision does it."""
    image = Image.open(io.BytesIO(data.tobytes())).convert("RGB")
    x, y, w, h = draw_box(image.size)
    crop = image.crop((x, y, x + w, y + h)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    if random.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.array(crop)
