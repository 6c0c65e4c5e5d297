"""Check of image sizes: outliers in area or aspect ratio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.report import Finding

__all__ = ["check_sizes"]

_FACTOR: Final = 4.0
_DEVIATIONS: Final = 5.0


def check_sizes(facts: Facts) -> Iterator[Finding]:
    """Yield a finding on images as they came whose area or form is more than 4 times another than the median.

    It must also be 5 median deviations away, so that sets of all sizes have no outliers.
    """
    width, height = facts.column("width").astype(np.float64), facts.column("height").astype(np.float64)
    known = np.flatnonzero((width > 0) & (height > 0))
    if len(known) < 3:
        return
    far = np.zeros(len(known), bool)
    for value in (width[known] * height[known], width[known] / height[known]):
        off = np.abs(np.log(value) - np.log(np.median(value)))
        far |= off > max(np.log(_FACTOR), _DEVIATIONS * float(np.median(off)))
    places = known[far]
    if not len(places):
        return
    usual = f"{np.median(width[known]):g} x {np.median(height[known]):g}"
    shown = places[: facts.limits.most_cases].tolist()
    yield facts.finding(
        "size-outlier",
        "note",
        places,
        f"{len(places)} images have another size or form than most, which have about {usual} pixels.",
        "Look at them: thumbnails, icons and banners are often no samples.",
        notes={place: f"{width[place]:g} x {height[place]:g}" for place in shown},
    )
