"""Colors that are told apart easily."""

from __future__ import annotations

import colorsys
from typing import Final

import numpy as np

__all__ = ["PALETTE_HEX", "PALETTE_RGB"]

_COUNT: Final = 80
_GOLDEN: Final = 0.618033988749895

PALETTE_RGB: Final = np.array(
    [
        [
            round(255 * part)
            for part in colorsys.hsv_to_rgb(
                number * _GOLDEN % 1.0, (0.9, 0.55)[number % 2], (0.95, 0.75, 0.55)[number % 3]
            )
        ]
        for number in range(_COUNT)
    ],
    dtype=np.int32,
)
"""(80, 3): red, green and blue in [0, 255]."""

PALETTE_HEX: Final = ["#%02X%02X%02X" % tuple(color) for color in PALETTE_RGB.tolist()]  # noqa: UP031 - three numbers
"""The same colors as text."""
