"""A detection set without photographs of anything: textured things of any form before noise as in nature.

``python -m bench.parts.things FOLDER`` writes 3,000 images of 224 px in COCO's form, the same ones on every run. A
detector that was trained on them knows what stands out from its surroundings; ``docs/explanation/results.md`` says how
much that helps with few real photographs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from bench.parts.photographs import photographs

__all__ = ["write_things"]

_COUNT, _PX, _SOURCES = 3000, 224, 300
_LEAST_AREA_PX = 50


def write_things(folder: Path, count: int = _COUNT) -> None:
    """Write the images and ``annotations.json`` into a folder; every object is of the class ``thing``."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    sources = [_read(path) for path in sorted(photographs("usual").rglob("*.jpg"))[:_SOURCES]]
    random = np.random.default_rng(0)
    content: dict[str, Any] = {"images": [], "annotations": [], "categories": [{"id": 0, "name": "thing"}]}
    for number in range(count):
        picture = _part(random, sources).astype(np.float32)
        for _ in range(int(random.choice([1, 1, 1, 2, 3]))):
            picture, form = _with_thing(random, sources, picture)
            rows, columns = np.nonzero(form > 100)
            if len(rows) < _LEAST_AREA_PX:
                continue
            left, top = int(columns.min()), int(rows.min())
            width, height = int(columns.max()) + 1 - left, int(rows.max()) + 1 - top
            box = {"bbox": [left, top, width, height], "area": width * height, "iscrowd": 0}
            place = {"id": len(content["annotations"]), "image_id": number, "category_id": 0}
            content["annotations"].append({**place, **box})
        name = f"images/{number:05d}.jpg"
        cv2.imwrite(str(folder / name), np.clip(picture, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 90])
        content["images"].append({"id": number, "file_name": name, "width": _PX, "height": _PX})
    (folder / "annotations.json").write_text(json.dumps(content))


def _with_thing(
    random: np.random.Generator, sources: Sequence[np.ndarray], picture: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the picture with a thing in it, and where that is, (H, W) uint8: an ellipse or a polygon, with spots."""
    width, height = random.uniform(0.2, 0.95, 2) * _PX
    x, y = random.uniform(width / 2, _PX - width / 2), random.uniform(height / 2, _PX - height / 2)
    corners = int(random.integers(5, 14))
    angles, radii = np.sort(random.uniform(0, 2 * np.pi, corners)), random.uniform(0.6, 1, corners)
    points = np.stack([x + radii * np.cos(angles) * width / 2, y + radii * np.sin(angles) * height / 2], 1)
    form = np.zeros((_PX, _PX), np.uint8)
    if random.random() < 0.5:
        cv2.ellipse(form, (int(x), int(y)), (int(width / 2), int(height / 2)), 0, 0, 360, 255, -1)
    else:
        cv2.fillPoly(form, [points.astype(np.int32)], 255)
    form = cv2.GaussianBlur(form, (0, 0), 1.0)
    texture = _part(random, sources)[:, ::-1].astype(np.float32)
    texture = texture * random.uniform(0.5, 1.3, 3) + random.uniform(-60, 60, 3)
    cover = form[..., None] / 255.0 * random.uniform(0.7, 1)
    picture = picture * (1 - cover) + texture * cover
    for _ in range(int(random.integers(0, 4))):
        rows, columns = np.nonzero(form > 200)
        if len(rows):
            place = int(random.integers(len(rows)))
            spot = (int(columns[place]), int(rows[place]))
            radius, color = int(random.integers(2, 10)), random.uniform(0, 255, 3).tolist()
            cv2.circle(picture, spot, radius, color, -1)
    return picture, form


def _part(random: np.random.Generator, sources: Sequence[np.ndarray]) -> np.ndarray:
    """Return a square part of a picture, (224, 224, 3) uint8."""
    source = sources[random.integers(len(sources))]
    height, width = source.shape[:2]
    side = int(random.integers(_PX, min(height, width) + 1))
    top, left = random.integers(0, height - side + 1), random.integers(0, width - side + 1)
    return cv2.resize(source[top : top + side, left : left + side], (_PX, _PX))


def _read(path: Path) -> np.ndarray:
    picture = cv2.imread(str(path))
    assert picture is not None
    return picture


if __name__ == "__main__":
    write_things(Path(sys.argv[1]))
