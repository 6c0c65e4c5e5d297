"""Folder of predictions that are images."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.errors import UsageError

__all__ = ["PictureFolder"]


class PictureFolder:
    """A folder that takes predictions as PNG files, each named after its input.

    Args:
        folder: new or empty.

    Raises:
        UsageError: where something stands in it.
        StorageError: where it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if next(folder.iterdir(), None) is not None:
                raise UsageError(
                    "The folder for predicted images is new or empty.",
                    received=str(folder),
                    advice="Name another one.",
                )

    def add(self, name: str, picture: np.ndarray | None) -> str | None:
        """Write an image (H, W, 3) or (H, W, 4) uint8; return its path, None where there is none.

        Args:
            name: of the input, such as its path.
            picture: the prediction; None where it is no image.

        Raises:
            StorageError: where it cannot be written.
        """
        if picture is None:
            return None
        # The time of a video's frame is no ending.
        short = Path(name).stem if Path(name).suffix.lower() in IMAGE_SUFFIXES else Path(name).name
        stem = base = re.sub(r"[^\w.-]+", "-", short) or "image"
        number = 2
        while stem.lower() in self._names:
            stem, number = f"{base}-{number}", number + 1
        self._names.add(stem.lower())
        path = self._folder / f"{stem}.png"
        with storage_errors(path):
            path.write_bytes(encode_image(picture, "png"))
        return str(path)
