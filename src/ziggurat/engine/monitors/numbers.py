"""Numbers in JSON: NaN and infinities, which JSON does not have, are encoded as strings."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["from_json", "to_json"]

_NAMES = ("NaN", "Infinity", "-Infinity")


def to_json(value: float) -> float | str:
    """Return the number, or its name where JSON cannot hold it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(value: Any) -> Any:
    """Return what ``to_json`` took; other values as they are."""
    return float(value) if value in _NAMES else value
