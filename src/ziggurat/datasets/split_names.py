"""File and folder names that denote a split."""

from __future__ import annotations

from typing import Final

__all__ = ["SPLIT_NAMES", "split_of"]

SPLIT_NAMES: Final = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}
"""Name of a folder or a list, in lower case → the split that it stands for."""


def split_of(path: str) -> str:
    """Return the split that the first folder of a path stands for; empty where it stands for none.

    >>> split_of("Validation/cat/1.jpg")
    'val'
    """
    return SPLIT_NAMES.get(path.partition("/")[0].lower(), "")
