"""Interface of a data source for training jobs: splits of labeled images, not shuffled, not preprocessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.policy import ErrorPolicy

__all__ = ["ImageSource"]


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """The splits of a dataset of labeled images.

    Args:
        splits: ``train`` and, where there are any, ``val`` and ``test`` → flow of ``[picture, label]``, not shuffled:
            images are (H, W, C) uint8 where ``in_memory``, else the bytes of files, or arrays that are stored so.
        class_names: names of the classes, by number.
        size: (height, width) that most images have.
        channels: 1 or 3.
        in_memory: whether all images stand in memory, in one size.
        policy: what happens with files that cannot be used.
    """

    splits: Mapping[str, DataFlow]
    class_names: Sequence[str]
    size: tuple[int, int]
    channels: int
    in_memory: bool
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)
