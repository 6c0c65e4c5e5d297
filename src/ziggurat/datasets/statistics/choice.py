"""Random subset of samples for statistics that would take too long on all of them, and a reader for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ziggurat.datasets.catalogue import Catalogue, Entry
from ziggurat.datasets.dataset import Dataset

__all__ = ["Source", "chosen_entries"]

_BLOCK: Final = 1000


class Source:
    """A dataset, or the catalog of a scan.

    Args:
        source: either.
    """

    def __init__(self, source: Dataset | Catalogue) -> None:
        self.dataset = source if isinstance(source, Dataset) else None
        self.catalogue = source.catalogue if isinstance(source, Dataset) else source

    def parts(self, entry: Entry) -> tuple[Any, ...] | None:
        """Return the parts of a sample as they are stored; None where a scan knows only where they are."""
        if self.dataset is not None and entry.row is not None:
            return self.dataset.sample(entry.split, entry.row).parts
        return entry.parts if all(isinstance(part, bytes) for part in entry.parts) else None

    def stored_size(self, entry: Entry) -> tuple[int, int] | None:
        """Return (width, height) of a sample's image as its label means it; None if unknown."""
        image = None if self.dataset is None else self.dataset.manifest.image
        if image is not None and image.width_px is not None and image.height_px is not None:
            return image.width_px, image.height_px
        if entry.width_px and entry.height_px:
            return entry.width_px, entry.height_px
        return None


def chosen_entries(catalogue: Catalogue, at_most: int, seed: int) -> Iterator[Entry]:
    """Yield all samples, or a random choice of so many where there are more, in their order."""
    count = len(catalogue)
    if count <= at_most:
        yield from catalogue.walk()
        return
    numbers = catalogue.column("number")
    places = np.random.default_rng(seed).choice(count, at_most, replace=False)
    chosen = np.sort(numbers[places])
    for start in range(0, len(chosen), _BLOCK):
        yield from catalogue.entries([int(number) for number in chosen[start : start + _BLOCK]])
