"""Statistics of image sizes."""

from __future__ import annotations

import numpy as np

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.statistics.model import Bar, PictureStatistics
from ziggurat.datasets.statistics.numbers import describe

__all__ = ["picture_statistics"]


def picture_statistics(catalogue: Catalogue, sizes: int = 10) -> PictureStatistics | None:
    """Return the sizes of the images as they came; None where no size is known.

    Args:
        catalog: of the samples.
        sizes: how many of the most frequent sizes to list.
    """
    widths, heights = catalogue.column("width"), catalogue.column("height")
    known = (widths > 0) & (heights > 0)
    missing = int(len(known) - known.sum())
    widths, heights = widths[known].astype(np.int64), heights[known].astype(np.int64)
    width = describe(widths, missing=missing)
    height = describe(heights, missing=missing)
    aspect = describe(widths / np.maximum(heights, 1), missing=missing)
    if width is None or height is None or aspect is None:
        return None
    both, counts = np.unique(widths << 32 | heights, return_counts=True)
    order = np.lexsort((both, -counts))[:sizes]
    bars = tuple(
        Bar(name=f"{int(both[at]) >> 32} x {int(both[at]) & 0xFFFFFFFF}", count=int(counts[at])) for at in order
    )
    return PictureStatistics(width_px=width, height_px=height, aspect=aspect, sizes=bars, different_sizes=len(both))
