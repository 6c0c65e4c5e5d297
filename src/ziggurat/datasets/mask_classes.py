"""Classes that occur in the masks of a dataset: which samples have pixels of which class."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import UsageError

__all__ = ["MOST_MASKS", "MaskClasses", "mask_classes"]

MOST_MASKS: Final = 20_000
"""Up to so many masks are counted; each is decoded once."""

_KEPT: Final = 4
_known: Final[dict[str, MaskClasses]] = {}
_lock: Final = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class MaskClasses:
    """Pairs of a sample and a class that its mask has.

    Args:
        numbers: (P) catalog numbers of samples.
        classes: (P) class numbers.
    """

    numbers: np.ndarray
    classes: np.ndarray

    def samples(self, class_number: int) -> np.ndarray:
        """Return the catalog numbers of the samples whose masks have a class, in order."""
        return self.numbers[self.classes == class_number]

    def counts(self, numbers: np.ndarray | None = None) -> dict[int, int]:
        """Return class number → samples whose masks have it.

        Args:
            numbers: catalog numbers of the samples that count; None for all.
        """
        inside = self.classes if numbers is None else self.classes[np.isin(self.numbers, numbers)]
        found, counts = np.unique(inside, return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))


def mask_classes(dataset: Dataset) -> MaskClasses:
    """Return the classes in the masks of a dataset; they are read once, for a dataset never changes.

    Pixels that are ignored are of no class.

    Raises:
        UsageError: if there are more than ``MOST_MASKS`` masks.
        DatapointError: if a mask cannot be read.
    """
    key = str(dataset.folder)
    with _lock:
        found = _known.get(key)
    if found is not None:
        return found
    if len(dataset) > MOST_MASKS:
        raise UsageError(
            f"The dataset has {len(dataset)} masks; classes are looked for in at most {MOST_MASKS}.",
            advice="Choose samples by split or name.",
        )
    numbers: list[int] = []
    classes: list[int] = []
    part = dataset.schema.parts.index("mask")
    for entry in dataset.catalogue.walk():
        pixels = dataset.picture(entry.split, entry.row or 0, part)
        present = np.flatnonzero(np.bincount(pixels.reshape(-1)))
        present = present[present != dataset.schema.ignore_class]
        numbers += [entry.number] * len(present)
        classes += present.tolist()
    found = MaskClasses(numbers=np.array(numbers, np.int64), classes=np.array(classes, np.int64))
    with _lock:
        while len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        _known[key] = found
    return found
