"""Columnar pickling of lists of datapoints: column by column where they are alike, to handle many small arrays.

Pickling sixty small arrays costs sixty times as much as one; stacked, they cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Points", "restore"]

_STACKED_AT_MOST_BYTES = 4096
_WORTH_IT = 4


class Points(list[Any]):
    """A list of datapoints; pickled, it becomes a plain list again, whose small arrays are rows of larger ones."""

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self[0]) if len(self) >= _WORTH_IT else None
        if kind not in (list, tuple) or any(type(point) is not kind or len(point) != len(self[0]) for point in self):
            return list, (list(self),)
        return restore, (kind is tuple, [_stacked(column) for column in zip(*self, strict=True)], len(self))


def restore(are_tuples: bool, columns: Sequence[Any], count: int) -> list[Any]:
    """Return the datapoints of the columns."""
    rows = zip(*columns, strict=True) if columns else (() for _ in range(count))
    return list(rows) if are_tuples else [list(row) for row in rows]


def _stacked(column: Sequence[Any]) -> Any:
    """Return one array in place of many that are alike, or a list of the values."""
    first = column[0]
    if type(first) is not np.ndarray or first.dtype.hasobject or not 0 < first.nbytes <= _STACKED_AT_MOST_BYTES:
        return list(column)
    if not first.ndim:  # a row of its stack would be a scalar
        return list(column)
    dtype, shape = first.dtype, first.shape
    if any(type(each) is not np.ndarray or each.dtype != dtype or each.shape != shape for each in column):
        return list(column)
    return np.concatenate(column).reshape(len(column), *shape)
