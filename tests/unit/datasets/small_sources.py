"""Small sources on disk for tests: class folders with digits of scikit-learn, and with images of odd kinds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ziggurat.datasets.creation import CreationRequest
from ziggurat.records.manifest import ImageForm

LEFT_BEHIND = {"spec.json", "events.jsonl", "heartbeat.json", "worker.lock", "log.txt", "test-openings.jsonl"}
"""Files of a dataset's folder that tell how it was made, not what it is."""


def photo(seed: int, height: int = 20, width: int = 24) -> np.ndarray:
    """Return a smooth image, (H, W, 3) uint8, that no other seed gives."""
    rough = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return cv2.resize(rough, (width, height), interpolation=cv2.INTER_CUBIC)


def class_folders(root: Path, count: int, classes: tuple[str, ...] = ("cat", "dog", "owl"), size: int = 24) -> Path:
    """Write ``count`` images, a class after the other, and return the folder."""
    for number in range(count):
        folder = root / classes[number % len(classes)]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(number, size - 4, size)).save(folder / f"{number:05d}.png")
    return root


def request(source: Path, **options: object) -> CreationRequest:
    """Return a request that works in this process."""
    return CreationRequest(**{"name": "small", "source": str(source), "workers": 0, **options})


def fitted(height: int, width: int, mode: str = "squash", encoding: str = "png", **form: object) -> ImageForm:
    """Return the form of images of one size."""
    return ImageForm(encoding=encoding, resize_mode=mode, height_px=height, width_px=width, **form)


def content_of(folder: Path) -> dict[str, str]:
    """Return file → SHA-256 of everything that a dataset is."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in LEFT_BEHIND]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
