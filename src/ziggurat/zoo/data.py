"""Options of the data that networks are trained on."""

from __future__ import annotations

from typing import Final

__all__ = ["DATASET_OPTIONS", "SOURCE_OPTIONS"]

DATASET_OPTIONS: Final = ("on_error",)
"""Options of a dataset as the source of a training."""

SOURCE_OPTIONS: Final = ("on_error", "size", "test_share", "validation_share")
"""Options of the other sources: digits, idx files, class folders."""
