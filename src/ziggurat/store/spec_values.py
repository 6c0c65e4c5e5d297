"""Flat form of a spec: the names by which jobs are filtered and sorted, and the value of each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ziggurat.store.columns import clean_text

__all__ = ["SpecValue", "flatten_spec"]

SpecValue = tuple[float | None, str | None]
"""A number or a text; the other is None. A bool is the number 0 or 1."""

_MOST_NAMES = 500
_LONGEST_NAME = 200
_LONGEST_TEXT = 500


def flatten_spec(spec: Mapping[str, Any]) -> dict[str, SpecValue]:
    """Return ``optimizer.momentum`` → 0.9 for every value of a spec; a list is its JSON text, None is left out.

    A spec comes from outside: at most 500 names are kept, and long texts are cut.
    """
    values: dict[str, SpecValue] = {}
    for name, value in _leaves(spec, "", 8):
        if len(values) >= _MOST_NAMES:
            break
        values[clean_text(name)[:_LONGEST_NAME]] = value
    return values


def _leaves(spec: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, SpecValue]]:
    for name, part in spec.items():
        if isinstance(part, Mapping) and depth:
            yield from _leaves(part, f"{prefix}{name}.", depth - 1)
        elif part is not None:
            yield f"{prefix}{name}", _value(part)


def _value(part: Any) -> SpecValue:
    if isinstance(part, int | float):
        try:
            number = float(part)
        except OverflowError:
            return None, str(part)[:_LONGEST_TEXT]
        return (None, "NaN") if math.isnan(number) else (number, None)
    if isinstance(part, str):
        return None, part[:_LONGEST_TEXT]
    return None, json.dumps(part, separators=(",", ":"), default=str)[:_LONGEST_TEXT]
