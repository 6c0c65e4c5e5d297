"""Mean training image of a version: from its source datasets, corrected for images added and removed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.versions.draft import Draft, Origin
from ziggurat.errors import DatapointError

__all__ = ["version_mean"]

_TRAIN = SPLITS.index("train")


def version_mean(draft: Draft) -> tuple[np.ndarray | None, tuple[float, ...]]:
    """Return the mean image of the training split, (H, W, C) float32, and the mean pixel.

    Only images that came to the split or left it are decoded. Where a dataset has no mean image, there is none,
    and the mean pixel stays where the split has the samples that it had; the same holds where an image that left
    cannot be read any more.
    """
    changes = [_Change(draft, origin) for origin in draft.origins]
    first = draft.origins[0].dataset
    if len(changes) == 1 and not changes[0].came.size and not changes[0].left.size:
        return first.mean(), first.manifest.pixel_mean
    if not (draft.splits == _TRAIN).any():
        return None, ()
    try:
        total = _total(changes)
    except DatapointError:
        total = None
    if total is None:
        return None, ()
    mean = (total / np.count_nonzero(draft.splits == _TRAIN)).astype(np.float32)
    return mean, tuple(float(value) for value in mean.mean(axis=(0, 1), dtype=np.float64))


class _Change:
    """What happened to the training samples of one dataset."""

    def __init__(self, draft: Draft, origin: Origin) -> None:
        now = draft.splits[origin.first : origin.first + len(origin)] == _TRAIN
        before = origin.splits == _TRAIN
        self.origin = origin
        self.came = np.flatnonzero(now & ~before)
        self.left = np.flatnonzero(before & ~now)
        self.before = int(np.count_nonzero(before))

    def total(self) -> np.ndarray | None:
        """Return the sum of its images in the training split, (H, W, C) float64."""
        mean = self.origin.dataset.mean()
        if mean is None:
            return None
        total = np.rint(mean.astype(np.float64) * self.before)  # sums of uint8 pixels are whole numbers
        for places, sign in ((self.came, 1), (self.left, -1)):
            for picture in self._pictures(places):
                if picture.shape != total.shape:
                    return None
                total += sign * picture.astype(np.float64)
        return total

    def _pictures(self, places: np.ndarray) -> Iterator[np.ndarray]:
        for place in places.tolist():
            split = SPLITS[self.origin.splits[place]]
            yield self.origin.dataset.picture(split, int(self.origin.rows[place]))


def _total(changes: list[_Change]) -> np.ndarray | None:
    total: np.ndarray | None = None
    for change in changes:
        if change.before == len(change.left) and not len(change.came):
            continue
        own = change.total()
        if own is None or (total is not None and own.shape != total.shape):
            return None
        total = own if total is None else total + own
    return total
