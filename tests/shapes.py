"""Synthetic images of shapes with their boxes, for tests of object detection."""

import json
from pathlib import Path

import cv2
import numpy as np

__all__ = ["SHAPES", "draw_shapes", "write_shapes"]

SHAPES = ("circle", "square", "triangle")
"""Names of the classes, by number."""


def draw_shapes(rng, size=128, most=4):
    """Return an image (size, size, 3) uint8 RGB of one to ``most`` shapes, and ``[(class, left, top, right, bottom)]``.

    The shapes overlap little, have any color, and stand on a noisy ground of another brightness.
    """
    ground = rng.integers(40, 216, 3)
    image = np.clip(ground + rng.normal(0, 12, (size, size, 3)), 0, 255).astype(np.uint8)
    found = []
    for _ in range(rng.integers(1, most + 1)):
        side = int(rng.integers(size // 8, size // 3))
        left, top = (int(each) for each in rng.integers(0, size - side, 2))
        box = (left, top, left + side, top + side)
        if any(_overlap(box, other[1:]) > 0.1 for other in found):
            continue
        color = tuple(int(each) for each in np.where(ground > 127, rng.integers(0, 80, 3), rng.integers(176, 256, 3)))
        number = int(rng.integers(0, len(SHAPES)))
        if number == 0:
            middle = (left * 8 + side * 4 - 4, top * 8 + side * 4 - 4)  # in eighths of a pixel, at its center
            cv2.circle(image, middle, side * 4 - 4, color, -1, cv2.LINE_AA, shift=3)
        elif number == 1:
            image[top : top + side, left : left + side] = color
        else:
            corners = [[left, top + side - 1], [left + side - 1, top + side - 1], [left + side // 2, top]]
            cv2.fillPoly(image, [np.array(corners, np.int32)], color, cv2.LINE_AA)
        found.append((number, *box))
    return image, found


def write_shapes(folder, train=60, val=20, *, size=128, seed=0):
    """Write images with COCO annotations: ``train/``, ``val/``, ``instances_train.json``, ``instances_val.json``."""
    folder, rng = Path(folder), np.random.default_rng(seed)
    for split, count in (("train", train), ("val", val)):
        (folder / split).mkdir(parents=True)
        images, annotations = [], []
        for number in range(count):
            image, found = draw_shapes(rng, size)
            name = f"{number:05}.png"
            cv2.imwrite(str(folder / split / name), image[:, :, ::-1])
            images.append({"id": number, "file_name": name, "height": size, "width": size})
            for kind, left, top, right, bottom in found:
                box, area = [left, top, right - left, bottom - top], (right - left) * (bottom - top)
                annotation = {"id": len(annotations) + 1, "image_id": number, "category_id": kind + 1, "iscrowd": 0}
                annotations.append({**annotation, "bbox": box, "area": area})
        categories = [{"id": number + 1, "name": name} for number, name in enumerate(SHAPES)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        (folder / f"instances_{split}.json").write_text(json.dumps(content))


def _overlap(box, other):
    """Return the share of the smaller of two boxes (left, top, right, bottom) that the other covers."""
    sides = [min(box[end], other[end]) - max(box[start], other[start]) for start, end in ((0, 2), (1, 3))]
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
    return max(sides[0], 0) * max(sides[1], 0) / min(areas)
