"""Datasets that the tests of ``ziggurat dataset`` show and change."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.records.manifest import ImageForm


def photo(seed: int, height: int = 20, width: int = 24) -> np.ndarray:
    """Return a smooth image, (H, W, 3) uint8, that no other seed gives."""
    rough = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return cv2.resize(rough, (width, height), interpolation=cv2.INTER_CUBIC)


def pet_folders(root: Path) -> Path:
    """Write twelve images of three kinds of pets, and two files that are no images; return the folder."""
    for number in range(12):
        folder = root / ("cat", "dog", "old owl")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        width = 32 if number == 11 else 24
        content = cv2.imencode(".png", photo(number, width=width))[1].tobytes()
        (folder / f"ä{number:02}.png").write_bytes(content)
    (root / "cat/cut off.png").write_bytes(content[:60])
    (root / "dog/empty.png").touch()
    return root


def fitted(encoding: str) -> ImageForm:
    """Return the form of images in color of one size, 10 pixels high and 12 wide."""
    return ImageForm(encoding=encoding, resize_mode="squash", height_px=10, width_px=12, channels=3)


def pets(folder: Path, **asked: object) -> Path:
    """Make the dataset of the pets: 8 for training, 4 for validation; return its folder."""
    source = pet_folders(folder.parent / f"{folder.name} as files")
    rule = SplitRule(method="share", val_share=0.34)
    create_dataset(CreationRequest(name="pets", source=str(source), workers=0, rule=rule, **asked), folder)
    return folder
