"""Type inference for table columns, in one pass over all cells with constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import date, datetime
from typing import Any, Final

from ziggurat.datasets.formats.table.dialect import number_of

__all__ = ["BOOLEANS", "MOST_CATEGORIES", "ColumnProfile", "is_missing", "time_of"]

MOST_CATEGORIES: Final = 1000
"""A column with more different values than this is none of categories."""

BOOLEANS: Final = {"true": True, "false": False, "yes": True, "no": False}

_LEAST_TWIN_ROWS: Final = 10
_LONGEST_CATEGORY: Final = 200
_REMEMBERED: Final = 1_000_000
_IDENTIFIER_NAME: Final = re.compile(r"(?i)(id|uuid|guid|key|index)|.*[_\- ](id|uuid|key)|.*[a-z](?-i:Id|ID)|")
_ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?"  # what both 3.11 and later read
)
_WRITTEN_TIME: Final = re.compile(r"(\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4})( \d\d?:\d\d(:\d\d)?)?")
_DATES: Final = ("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S")
_ISO_FORMAT: Final = "iso"


def is_missing(cell: Any, missing: Collection[str]) -> bool:
    """Say whether a cell holds no value: None, NaN, or a text that stands for none."""
    if isinstance(cell, str):
        return cell.strip() in missing
    return cell is None or cell != cell


def time_of(cell: Any, written: str) -> str | None:
    """Return a time as ISO text, None where the cell holds none.

    Args:
        cell: a text, a date or a date with its time.
        written: ``iso``, or the form of a date as ``strptime`` names it, such as ``%d.%m.%Y``.
    """
    if isinstance(cell, date):
        return cell.isoformat()
    if not isinstance(cell, str):
        return None
    cell = cell.strip()
    try:
        if written == _ISO_FORMAT:
            if not _ISO.fullmatch(cell):
                return None
            return date.fromisoformat(cell).isoformat() if len(cell) == 10 else datetime.fromisoformat(cell).isoformat()
        if not _WRITTEN_TIME.fullmatch(cell):
            return None
        clock = _CLOCKS[cell.count(":")]
        when = datetime.strptime(cell, written + clock)
    except ValueError:
        return None
    return when.isoformat() if clock else when.date().isoformat()


class ColumnProfile:
    """What is known of a column; give it every cell.

    Args:
        name: its heading.
        missing: texts that stand for no value.
        decimal: sign of texts that are numbers.
        typed: whether the source knows types, so that a text is never a number.
    """

    def __init__(self, name: str, missing: Collection[str], *, decimal: str = ".", typed: bool = False) -> None:
        self.name = name
        self.rows = 0
        self.missing = 0
        self.first_missing: str = ""
        self.is_integer = True
        self.counting = True  # 0, 1, 2, … or 1, 2, 3, …
        self.characters = 0
        self.words = 0
        self.times: tuple[str, ...] = (_ISO_FORMAT, *_DATES)
        self._texts_for_nothing = missing
        self._decimal = decimal
        self._typed = typed
        self._values: dict[Any, int] | None = {}
        self._codes: dict[Any, int] = {}
        self._order_hash = 0  # of the codes of the cells, which are numbered in the order of their coming
        self._cells_hash = 0
        self._unique = _Uniqueness(remember=bool(_IDENTIFIER_NAME.fullmatch(name)))
        self._possible: list[tuple[str, Callable[[Any], bool]]] = [
            ("boolean", self._takes_boolean),
            ("number", self._takes_number),
            ("time", self._takes_time),
        ]

    def add(self, cell: Any, place: str) -> None:
        """Look at a cell; ``place`` names it in a problem."""
        self.rows += 1
        is_none = is_missing(cell, self._texts_for_nothing)
        self._cells_hash = hash((self._cells_hash, None if is_none else cell))
        if is_none:
            self._order_hash = hash((self._order_hash, None))
            self.missing += 1
            self.first_missing = self.first_missing or place
            return
        if self._values is not None and cell in self._values:
            self.counting = False  # what a value can be was found out when it came first
        elif self._possible:
            self._possible = [(name, takes) for name, takes in self._possible if takes(cell)]
        if isinstance(cell, str):
            self.characters += len(cell)
            self.words += cell.count(" ") + 1
        self._count(cell)
        self._unique.add(cell)

    @property
    def values(self) -> int:
        """Cells that hold one."""
        return self.rows - self.missing

    @property
    def is_unique(self) -> bool:
        """Whether every row has a value, and each another one; only proven ones count."""
        return not self.missing and self.rows > 0 and self._unique.holds

    @property
    def has_repeats(self) -> bool:
        """Whether a value was seen twice, in a column whose name says that its values differ."""
        return self._unique.repeats

    @property
    def distinct(self) -> int | None:
        """Different values; None where there are more than ``MOST_CATEGORIES``."""
        return None if self._values is None else len(self._values)

    def determines(self, other: ColumnProfile) -> bool:
        """Return whether each value stands beside one value of another column, and the other way round.

        Where hardly a value repeats, that says nothing, and only the same cells count.
        """
        if self.distinct == 1 or not self.values:
            return False
        if self._cells_hash == other._cells_hash:
            return True
        repeats = self.distinct is not None and 2 * self.distinct <= self.values and self.rows >= _LEAST_TWIN_ROWS
        return repeats and other.distinct == self.distinct and self._order_hash == other._order_hash

    def categories(self) -> tuple[str, ...]:
        """Return the different values as texts: whole numbers by size, all others by letter."""
        values = [str(value) for value in self._values or ()]
        if self.is_integer and self.can_be("number"):
            return tuple(sorted(values, key=lambda value: (int(value), value)))
        return tuple(sorted(values))

    def can_be(self, type_name: str) -> bool:
        """Say whether all cells are numbers, booleans or times."""
        return bool(self.values) and any(name == type_name for name, _ in self._possible)

    def type(self) -> str:
        """Return the type that suits all cells, a name in ``ziggurat.records.schema.COLUMN_TYPES``."""
        if self._is_identifier():
            return "identifier"
        for name in ("boolean", "number", "time"):
            if self.can_be(name):
                return name
        return "category" if self._is_category() else "text"

    def _is_identifier(self) -> bool:
        if not self.is_unique or self.rows < 2:
            return False
        whole = self.can_be("number") and self.is_integer
        if _IDENTIFIER_NAME.fullmatch(self.name):
            return whole or not self._possible
        return whole and self.counting and self.rows >= 20

    def _is_category(self) -> bool:
        distinct = self.distinct
        if not distinct:
            return False
        if self.words > 4 * self.values:
            return False
        return distinct <= max(2 if self.values < 5 else 5, self.values // 2)

    def _count(self, cell: Any) -> None:
        if self._values is None:
            return
        if isinstance(cell, str) and len(cell) > _LONGEST_CATEGORY:
            self._values = None
            return
        self._values[cell] = self._values.get(cell, 0) + 1
        self._order_hash = hash((self._order_hash, self._codes.setdefault(cell, len(self._codes))))
        if len(self._values) > MOST_CATEGORIES:
            self._values = None

    def _takes_boolean(self, cell: Any) -> bool:
        if isinstance(cell, str):
            return not self._typed and cell.strip().lower() in BOOLEANS
        return isinstance(cell, bool)

    def _takes_number(self, cell: Any) -> bool:
        if isinstance(cell, str):
            number = None if self._typed else number_of(cell, self._decimal)
        else:
            number = cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
        self.is_integer = self.is_integer and isinstance(number, int)
        if self.counting:
            self.counting = number in (self.values - 1, self.values)
        return number is not None

    def _takes_time(self, cell: Any) -> bool:
        if isinstance(cell, date):
            return True
        if self._typed or not isinstance(cell, str):
            return False
        self.times = tuple(written for written in self.times if time_of(cell, written) is not None)
        return bool(self.times)


class _Uniqueness:
    """Whether values differ: by their order, or by remembering them where the column's name says that it matters."""

    def __init__(self, *, remember: bool) -> None:
        self.repeats = False
        self._last: Any = None
        self._rises = True
        self._remembered: set[int] | None = set() if remember else None

    def add(self, cell: Any) -> None:
        """Take the next value."""
        if self._rises:
            number = number_of(cell) if isinstance(cell, str) else None
            value = cell if number is None else number
            try:
                self._rises = self._last is None or value > self._last
            except TypeError:
                self._rises = False
            self._last = value
        if self._remembered is not None:
            before = len(self._remembered)
            self._remembered.add(hash(cell))
            self.repeats = self.repeats or len(self._remembered) == before
            if self.repeats or before >= _REMEMBERED:
                self._remembered = None

    @property
    def holds(self) -> bool:
        """Whether no value came twice, as far as that was proven."""
        return self._rises or self._remembered is not None
