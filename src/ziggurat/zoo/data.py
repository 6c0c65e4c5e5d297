"""Data that networks can be trained on: kinds of datasets, and options of sources."""

from __future__ import annotations

from typing import Final

__all__ = ["DATASET_OPTIONS", "SOURCE_OPTIONS", "TRAINABLE_KINDS"]

TRAINABLE_KINDS: Final = ("image-classification",)
"""Kinds of datasets that a training job can read."""

DATASET_OPTIONS: Final = ("on_error",)
"""Options of a dataset as the source of a training."""

SOURCE_OPTIONS: Final = ("on_error", "size", "test_share", "validation_share")
"""Options of the other sources: digits, idx files, class folders."""
