"""Display names of the kinds of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["KIND_NAMES"]

KIND_NAMES: Final[Mapping[str, str]] = {
    "image-classification": "Image classification",
    "image-regression": "Numbers from images",
    "detection": "Object detection",
    "segmentation": "Segmentation",
    "image-to-image": "Image to image",
    "image-pairs": "Pairs of images",
    "table": "Table",
    "text-classification": "Text classification",
    "generic": "Generic (arrays)",
}
"""Kind of a dataset → its name."""
