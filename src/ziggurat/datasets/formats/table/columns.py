"""Columns of a table: the target, the type of each column, and conversion of cells to values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from ziggurat.datasets.formats.table.dialect import number_of
from ziggurat.errors import DataError
from ziggurat.records.schema import Column

__all__ = [
    "ColumnPlan",
    "ColumnProfile",
    "Target",
    "choose_target",
    "class_numbers",
    "is_missing",
    "plan_column",
    "time_of",
    "twins",
]

_USUAL_TARGETS: Final = ("target", "label", "survived", "outcome", "y", "diagnosis", "species", "churn")
"""Names that columns have only where they are the target, in lower case, the likeliest first."""

_LIKELY_TARGETS: Final = ("class", "salary", "output", "response")
"""Names that other columns may have too: a ``class`` may be that of a cabin, and then repeats its number."""

_MOST_WHOLE_CLASSES: Final = 10  # a column of more distinct integers is a number to predict

MOST_CATEGORIES: Final = 1000
"""A column with more different values than this is none of categories."""

BOOLEANS: Final = {"true": True, "false": False, "yes": True, "no": False}

_LEAST_TWIN_ROWS: Final = 10  # in fewer rows, two columns may agree by chance
_LONGEST_CATEGORY: Final = 200  # characters; a longer cell is a text
_REMEMBERED: Final = 1_000_000  # distinct values; above, memory would grow with the file
_IDENTIFIER_NAME: Final = re.compile(r"(?i)(id|uuid|guid|key|index)|.*[_\- ](id|uuid|key)|.*[a-z](?-i:Id|ID)|")
_ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?"  # what both 3.11 and later read
)
_WRITTEN_TIME: Final = re.compile(r"(\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4})( \d\d?:\d\d(:\d\d)?)?")
_DATES: Final = ("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S")
_ISO_FORMAT: Final = "iso"


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is to be predicted.

    Args:
        name: of its column.
        reason: why that column, one sentence.
        is_class: whether it is a class; else a number.
        class_names: by class number.
    """

    name: str
    reason: str
    is_class: bool
    class_names: tuple[str, ...] = ()


class ColumnPlan:
    """How the cells of one column become values.

    Args:
        column: what the schema says of it; its missing cells are counted here.
        convert: from a cell with a value to the value, None where that cannot be.
    """

    def __init__(self, column: Column, convert: Callable[[Any], Any]) -> None:
        self.column = column
        self.convert = convert
        self.missing = 0
        self.bad = 0
        self.first_bad = ""


def choose_target(profiles: Sequence[ColumnProfile], wanted: str, task: str) -> Target | None:
    """Return the target of a table, None if none is wanted.

    Args:
        profiles: of all columns that may be the target.
        wanted: name of the column; empty to guess it; ``none`` for none.
        task: ``classes``, ``number`` or ``guess``.

    Raises:
        DataError: where the column can be neither.
    """
    by_name = {profile.name: profile for profile in profiles}
    if wanted and wanted in by_name:
        return _target(by_name[wanted], "it was said", task)
    if wanted == "none" or not profiles:
        return None
    by_lower = {profile.name.lower(): profile for profile in reversed(profiles)}
    found = [by_lower[name] for name in (*_USUAL_TARGETS, *_LIKELY_TARGETS) if name in by_lower]
    found = [each for each in found if _may_be_target(each)]
    sure = [each for each in found if each.name.lower() in _USUAL_TARGETS or not twins(each, profiles)]
    if usual := next(iter(sure), None):
        return _target(usual, f"columns named `{usual.name}` usually are", task)
    last = next((profile for profile in reversed(profiles) if _may_be_target(profile)), None)
    if last is None:
        return None
    place = "the last column" if last is profiles[-1] else "the last column that holds numbers or classes"
    return _target(last, f"it is {place}", task)


def twins(profile: ColumnProfile, profiles: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return the other columns that say the same as one, cell for cell or one value for one value."""
    return [each for each in profiles if each is not profile and each.determines(profile)]


def _may_be_target(profile: ColumnProfile) -> bool:
    return profile.type() in ("number", "boolean", "category")


def _target(profile: ColumnProfile, reason: str, task: str) -> Target:
    is_class = _is_class(profile) if task == "guess" else task == "classes"
    if is_class and profile.distinct is None:
        raise DataError(
            f"A target with classes has at most {MOST_CATEGORIES} of them.",
            received=f"more in the column `{profile.name}`",
            advice="Name another column with the option `target`.",
        )
    if not is_class and not profile.can_be("number"):
        raise DataError(
            "A target is a number or a class.",
            received=f"the column `{profile.name}`, of the type {profile.type()}",
            advice="Name another column with the option `target`, or give the option `task` the value classes.",
        )
    if not is_class:
        return Target(name=profile.name, reason=reason, is_class=False)
    names = ("false", "true") if profile.can_be("boolean") else profile.categories()
    return Target(name=profile.name, reason=reason, is_class=True, class_names=names)


def _is_class(profile: ColumnProfile) -> bool:
    if not profile.can_be("number"):
        return True
    distinct = profile.distinct
    few = distinct is not None and 2 <= distinct <= min(_MOST_WHOLE_CLASSES, profile.values // 3)
    return profile.is_integer and few


def plan_column(
    profile: ColumnProfile,
    type_name: str,
    *,
    categories: Sequence[str] = (),
    is_class: bool = False,
    decimal: str = ".",
) -> ColumnPlan:
    """Return how a column's cells become values.

    Args:
        profile: of the column.
        type_name: its type; of a target with classes it becomes ``category``, unless it is ``boolean``.
        categories: that it is known to have, in order; others are put behind them.
        is_class: whether it is the target, with classes.
        decimal: sign of its numbers.
    """
    if is_class and type_name != "boolean":
        type_name = "category"
    found: tuple[str, ...] = ()
    if type_name == "category":
        known = set(categories)
        found = (*categories, *(value for value in profile.categories() if value not in known))
    column = Column(name=profile.name, type=type_name, categories=found)
    return ColumnPlan(column, _converter(column, profile, decimal))


def _converter(column: Column, profile: ColumnProfile, decimal: str) -> Callable[[Any], Any]:
    if column.type == "number":
        return _whole(decimal) if profile.can_be("number") and profile.is_integer else _broken(decimal)
    if column.type == "boolean":
        return lambda cell: BOOLEANS.get(cell.strip().lower()) if isinstance(cell, str) else _boolean(cell)
    if column.type == "time":
        written = profile.times[0] if profile.times else "iso"
        return lambda cell: time_of(cell, written)
    if column.type == "category" and column.categories:
        known = frozenset(column.categories)
        return lambda cell: str(cell) if str(cell) in known else None
    return str


def _whole(decimal: str) -> Callable[[Any], Any]:
    return lambda cell: number_of(cell, decimal) if isinstance(cell, str) else cell


def _broken(decimal: str) -> Callable[[Any], Any]:
    def convert(cell: Any) -> float | None:
        number = number_of(cell, decimal) if isinstance(cell, str) else cell
        return float(number) if isinstance(number, int | float) else None

    return convert


def _boolean(cell: Any) -> bool | None:
    return bool(cell) if cell in (0, 1) else None


def class_numbers(target: Target | None) -> dict[Any, int] | None:
    """Return value → class number, None where the target is no class; booleans have their own numbers."""
    if target is None or not target.is_class:
        return None
    return {name: number for number, name in enumerate(target.class_names)} | {False: 0, True: 1}


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
