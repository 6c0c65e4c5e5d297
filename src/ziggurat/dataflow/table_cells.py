"""Cells of a table's row as numbers: what each type of column may hold, and what a network gets of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np

from ziggurat.errors import DatapointError

__all__ = ["PARTS", "CategoryColumn", "MeasuredColumn", "RowOrder", "category_of", "parts_of"]

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "number": ("value",),
    "boolean": ("value",),
    "time": ("seconds", "day_sine", "day_cosine", "week_sine", "week_cosine", "year_sine", "year_cosine"),
}
"""Type of a measured column → the numbers that are made of one cell.

A time is its seconds, and its place in the day, the week and the year: an angle, as sine and cosine, so that 23:59 is
next to 00:00.
"""

_LARGEST: Final = float(np.finfo(np.float32).max)
_DAY_S: Final = 86_400
_YEAR_DAYS: Final = 365.25
_SHOWN: Final = 40


@dataclass(frozen=True, kw_only=True)
class MeasuredColumn:
    """A column that becomes measured numbers.

    Args:
        name: of the column.
        type: number, boolean or time.
        parts: which of ``PARTS`` the network gets; one that never varies in the training split is not among them.
        fill: the mean of each part in the training split, which stands for a missing value.
        has_indicator: whether a further number says if the value is missing: 1, else 0.
        origin_s: the earliest time of the training split, in seconds since 1970, from which times are counted.
    """

    name: str
    type: str
    parts: tuple[str, ...]
    fill: tuple[float, ...]
    has_indicator: bool
    origin_s: float = 0.0

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each number that the network gets."""
        parts = tuple(
            self.name if part in ("value", "seconds") else f"{self.name} ({part.replace('_', ', ')})"
            for part in self.parts
        )
        return (*parts, f"{self.name} (missing)") if self.has_indicator else parts

    def numbers(self, cell: Any, key: Any) -> tuple[list[float], bool]:
        """Return the numbers of a cell, and whether its value is missing.

        Raises:
            DatapointError: where the cell does not have the column's type.
        """
        found = parts_of(self.name, self.type, cell, key)
        if found is None:
            return ([*self.fill, 1.0] if self.has_indicator else list(self.fill)), True
        by_name: dict[str, float] = dict(zip(PARTS[self.type], found, strict=True))
        if self.type == "time":
            by_name["seconds"] -= self.origin_s
        numbers = [by_name[part] for part in self.parts]
        return ([*numbers, 0.0] if self.has_indicator else numbers), False


@dataclass(frozen=True, kw_only=True)
class CategoryColumn:
    """A column that becomes the number of its category.

    Args:
        name: of the column.
        values: the categories of the training split, whose numbers are 1, 2, …; 0 is for all others.
    """

    name: str
    values: tuple[str, ...]


class RowOrder:
    """The values of a row in the order of the table's columns.

    Args:
        names: of the columns, the target among them.
        target: name of the column that a row need not have; empty for none.
        needed: names that a row given by name must have.
    """

    def __init__(self, names: Sequence[str], target: str, needed: Sequence[str]) -> None:
        self._names = tuple(names)
        self._known = frozenset(names)
        self._target = self._names.index(target) if target else None
        self._needed = tuple(needed)

    def cells(self, row: Any, key: Any) -> Sequence[Any]:
        """Return one value for each column; what stands for the target has no meaning.

        Args:
            row: a list in the order of the columns, with or without the target; or name → value.
            key: of the row, for errors.

        Raises:
            DatapointError: where the row has other columns.
        """
        if isinstance(row, Mapping):
            return self._by_name(row, key)
        if isinstance(row, np.ndarray):
            row = row.tolist()
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise DatapointError(key, f"a row is a list of values or an object; received {_shown(row)}.")
        if len(row) == len(self._names):
            return row
        if self._target is not None and len(row) == len(self._names) - 1:
            return [*row[: self._target], None, *row[self._target :]]
        names = ", ".join(f"`{name}`" for name in self._names)
        without = "" if self._target is None else f", of which `{self._names[self._target]}` may be left out"
        raise DatapointError(key, f"a row has {len(self._names)} values{without}; received {len(row)}: {names}.")

    def _by_name(self, row: Mapping[Any, Any], key: Any) -> Sequence[Any]:
        for name in row:
            if name not in self._known:
                names = ", ".join(f"`{each}`" for each in self._names)
                raise DatapointError(key, f"the table has no column {_shown(name)}, only {names}.")
        for name in self._needed:
            if name not in row:
                raise DatapointError(
                    key, f"it has no value for the column `{name}`.", advice="Give null where the value is missing."
                )
        return [row.get(name) for name in self._names]


def parts_of(name: str, type_name: str, cell: Any, key: Any) -> tuple[float, ...] | None:
    """Return the ``PARTS`` of a cell, times in seconds since 1970; None where the value is missing.

    Args:
        name: of the column, for errors.
        type_name: number, boolean or time.
        cell: the value; None and NaN stand for a missing one.
        key: of the row, for errors.

    Raises:
        DatapointError: where the cell does not have that type.
    """
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type_name == "time":
        return _time_parts(name, value, key)
    if type_name == "boolean":
        if isinstance(value, bool | int | float) and value in (0, 1):
            return (float(value),)
        raise _wrong(name, "true or false", value, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
        raise _wrong(name, "a number from -3.4e38 to 3.4e38", value, key)
    return (float(value),)


def category_of(name: str, cell: Any, key: Any) -> str | None:
    """Return the category of a cell; None where it is missing.

    Raises:
        DatapointError: where it is neither a text nor a whole number.
    """
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # an importer keeps categories as texts, also those that look like whole numbers
    raise _wrong(name, "a category, which is a text", value, key)


def _time_parts(name: str, value: Any, key: Any) -> tuple[float, ...]:
    if isinstance(value, date):  # of which a datetime is one
        value = value.isoformat()
    try:
        when = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(name, "a time such as 2024-05-31 or 2024-05-31T14:30:00", value, key) from None
    moment = when if when.tzinfo else when.replace(tzinfo=UTC)
    # The angles are those of the clock as it is written: people live by it, whatever its zone.
    day = (when.hour * 3600 + when.minute * 60 + when.second + when.microsecond / 1e6) / _DAY_S
    week = (when.weekday() + day) / 7
    year = (when.timetuple().tm_yday - 1 + day) / _YEAR_DAYS
    angles = [2 * math.pi * turn for turn in (day, week, year)]
    return (moment.timestamp(), *(wave(angle) for angle in angles for wave in (math.sin, math.cos)))


def _wrong(name: str, expected: str, value: Any, key: Any) -> DatapointError:
    return DatapointError(key, f"its column `{name}` must hold {expected}; received {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
