"""Columns of a table: the target, the type of each column, and conversion of cells to values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from ziggurat.datasets.formats.table.dialect import number_of
from ziggurat.errors import DataError
from ziggurat.records.schema import Column

__all__ = [
    "ColumnPlan",
    "ColumnProfile",
    "Doubt",
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
_WRITTEN_TIME: Final = re.compile(
    r"(\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4}|\d\d?-\d\d?-\d{4})( \d\d?:\d\d(:\d\d)?)?"
)
_MONTH_FIRST: Final = ("%m/%d/%Y", "%m-%d-%Y")
_DAY_FIRST: Final = ("%d/%m/%Y", "%d-%m-%Y")
_DATES: Final = ("%Y/%m/%d", "%d.%m.%Y", *_MONTH_FIRST, *_DAY_FIRST)
_CLOCKS: Final = ("", " %H:%M", " %H:%M:%S")
_ISO_FORMAT: Final = "iso"

ODD_SHARE: Final = 0.01
"""Share of the cells of a column that may not be of its type: they are listed; more is asked about."""

_MOST_ODD_TEXTS: Final = 3  # different ones, which stand for "unknown" however many cells they fill
_ODD_ASKED: Final = 0.1  # share up to which a column is asked about, however many texts it has
_CODE: Final = re.compile(r"[+-]?(0\d+|\d{19,})")
_IDEOGRAM: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")
_LETTERS_OF_WORD: Final = 2  # on average, of a language that has no blanks between words
_MOST_EXACT_FLOAT: Final = 2.0**53


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A column of which most cells are of a type, and too many are not.

    Args:
        name: of the column.
        type: of most of its cells: ``number`` or ``time``.
        odd: cells that are none.
        values: cells that hold a value.
        first: the first of the odd cells, and its place.
    """

    name: str
    type: str
    odd: int
    values: int
    first: str

    def __str__(self) -> str:
        share = 100 * self.odd / self.values
        odd = f"{self.odd} of {self.values} cells ({share:.1f} %) that are no {self.type}"
        return f"`{self.name}` with {odd}, the first {self.first}"


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
            f"The target `{profile.name}` has more than {MOST_CATEGORIES} classes.",
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
    return few and (profile.is_whole or not profile.is_exactly("number"))


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
        found = (*categories, *(value for value in profile.categories(is_class=is_class) if value not in known))
    column = Column(name=profile.name, type=type_name, categories=found)
    return ColumnPlan(column, _converter(column, profile, decimal))


def _converter(column: Column, profile: ColumnProfile, decimal: str) -> Callable[[Any], Any]:
    if column.type == "number":
        return _whole(decimal) if profile.is_exactly("number") and profile.is_integer else _broken(decimal)
    if column.type == "boolean":
        return lambda cell: BOOLEANS.get(cell.strip().lower()) if isinstance(cell, str) else _boolean(cell)
    if column.type == "time":
        written = profile.time_form
        return lambda cell: time_of(cell, written)
    if column.type == "category" and column.categories:
        known = {str(value): value for value in column.categories}
        return lambda cell: known.get(str(cell), known.get(profile.category_of(cell)))
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
        if written[2] not in cell or not _WRITTEN_TIME.fullmatch(cell):
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
        dates: ``month first`` or ``day first`` where that is known of dates such as 03/04/2024; else empty.
    """

    def __init__(
        self, name: str, missing: Collection[str], *, decimal: str = ".", typed: bool = False, dates: str = ""
    ) -> None:
        self.name = name
        self.rows = 0
        self.missing = 0
        self.first_missing: str = ""
        self.is_integer = True
        self.is_whole = True  # as integers, or as floats such as 3.0
        self.counting = True  # 0, 1, 2, … or 1, 2, 3, …
        self.characters = 0
        self.words = 0
        self._texts_for_nothing = missing
        self._decimal = decimal
        self._typed = typed
        excluded = {"month first": _DAY_FIRST, "day first": _MONTH_FIRST}.get(dates, ())
        self._forms = tuple(form for form in (_ISO_FORMAT, *_DATES) if form not in excluded)
        self._has_codes = False
        self._fits: Counter[str] = Counter()  # type, or form of a date → cells
        self._fits_of: dict[Any, tuple[str, ...]] = {}
        self._odd: dict[str, dict[Any, str]] = {"number": {}, "time": {}}
        self._values: dict[Any, int] | None = {}
        self._codes: dict[Any, int] = {}
        self._order_hash = 0  # of the codes of the cells, which are numbered in the order of their coming
        self._cells_hash = 0
        self._unique = _Uniqueness(remember=bool(_IDENTIFIER_NAME.fullmatch(name)))

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
        self._count_types(cell, place)
        if isinstance(cell, str):
            self.characters += len(cell)
            self.words += cell.count(" ") + 1
            if not cell.isascii():
                self.words += len(_IDEOGRAM.findall(cell)) // _LETTERS_OF_WORD
        self._count(cell)
        self._unique.add(cell)

    def _count_types(self, cell: Any, place: str) -> None:
        key = (type(cell), cell)  # 1, 1.0 and True are one key of a dictionary otherwise
        fits = self._fits_of.get(key)
        if fits is None:
            fits = tuple(self._types_of(cell))
            if len(self._fits_of) <= MOST_CATEGORIES:
                self._fits_of[key] = fits
        else:
            self.counting = False
        for name in fits:
            self._fits[name] += 1
        for name, odd in self._odd.items():
            if name not in fits and len(odd) <= _MOST_ODD_TEXTS:
                odd.setdefault(cell, place)

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

    def categories(self, *, is_class: bool = True) -> tuple[str, ...]:
        """Return the different values as texts: whole numbers by size, all others by letter.

        Args:
            is_class: whether 1.0 is called 1 where all numbers are whole; a category is called as its cells are.
        """
        values = {self.category_of(value) if is_class else str(value) for value in self._values or ()}
        if self.is_whole and self.is_exactly("number"):
            return tuple(sorted(values, key=lambda value: (number_of(value, self._decimal) or 0, value)))
        return tuple(sorted(values))

    def category_of(self, cell: Any) -> str:
        """Return the name of a cell as a category: ``1`` for ``1.0`` where all numbers are whole."""
        if self.is_whole and self.is_exactly("number"):
            number = number_of(cell, self._decimal) if isinstance(cell, str) else cell
            if isinstance(number, int | float) and number == number:
                return str(int(number))
        return str(cell)

    def is_exactly(self, type_name: str) -> bool:
        """Say whether every cell is a number, boolean or time."""
        return bool(self.values) and self._fitting(type_name) == self.values and not self._is_code(type_name)

    def can_be(self, type_name: str) -> bool:
        """Say whether all cells are booleans, or at least 99 % numbers or times; a code such as 007 is no number."""
        if type_name == "boolean":
            return self.is_exactly(type_name)
        odd = self.values - self._fitting(type_name)
        return bool(self.values) and odd <= ODD_SHARE * self.values and not self._is_code(type_name)

    def _is_code(self, type_name: str) -> bool:
        return type_name == "number" and self._has_codes

    def _fitting(self, type_name: str) -> int:
        return self._fits[self.time_form] if type_name == "time" else self._fits[type_name]

    @property
    def time_form(self) -> str:
        """The form in which most cells are times: ``iso``, or as ``strptime`` names it; the month is first in doubt."""
        return max(self._forms, key=lambda form: self._fits[form])

    @property
    def is_day_open(self) -> bool:
        """Whether its dates can be read with the month first and with the day first, and no cell tells."""
        form = self.time_form
        if form not in _MONTH_FIRST or not self.can_be("time"):
            return False
        other = _DAY_FIRST[_MONTH_FIRST.index(form)]
        return other in self._forms and self._fits[other] == self._fits[form]

    def doubt(self) -> Doubt | None:
        """Return what must be asked of a column most of whose cells are numbers or times; None where it is clear."""
        if self.type() in ("identifier", "boolean", "number", "time") or self._has_codes:
            return None
        for name in ("number", "time"):
            odd = self.values - self._fitting(name)
            if 2 * odd >= self.values:
                continue
            texts = self._odd[name]
            if name == "number":
                is_asked = self._has_many_numbers() and (
                    odd <= _ODD_ASKED * self.values or len(texts) <= _MOST_ODD_TEXTS
                )
                if not is_asked:
                    continue
            cell, place = next(iter(texts.items()), ("", ""))
            first = f"{str(cell)[:40]!r} in {place}" if place else "among them"
            return Doubt(name=self.name, type=name, odd=odd, values=self.values, first=first)
        return None

    def _has_many_numbers(self) -> bool:
        """Say whether its numbers are too many to be categories, of which nothing would be lost."""
        if self._values is None:
            return True
        numbers = sum("number" in self._fits_of.get((type(value), value), ()) for value in self._values)
        return numbers > _MOST_WHOLE_CLASSES

    def type(self) -> str:
        """Return the type that suits the cells, a name in ``ziggurat.records.schema.COLUMN_TYPES``."""
        if self._is_identifier():
            return "identifier"
        for name in ("boolean", "number", "time"):
            if self.can_be(name):
                return name
        return "category" if self._is_category() else "text"

    def _is_identifier(self) -> bool:
        if not self.is_unique or self.rows < 2:
            return False
        whole = self.is_exactly("number") and self.is_integer
        if _IDENTIFIER_NAME.fullmatch(self.name):
            return whole or not any(map(self.is_exactly, ("boolean", "number", "time")))
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

    def _types_of(self, cell: Any) -> Iterator[str]:
        """Yield the types that a cell fits, and the forms in which it is a time."""
        is_text = isinstance(cell, str)
        if is_text and self._typed:
            return
        if isinstance(cell, bool) or (is_text and cell.strip().lower() in BOOLEANS):
            yield "boolean"
        if self._is_number(cell):
            yield "number"
            return
        if is_text and not cell.lstrip()[:1].isdigit():
            return
        forms = [form for form in self._forms if time_of(cell, form) is not None]
        yield from forms
        if forms:
            yield "time"

    def _is_number(self, cell: Any) -> bool:
        if isinstance(cell, str):
            number = number_of(cell, self._decimal)
            self._has_codes = self._has_codes or (number is None and bool(_CODE.fullmatch(cell.strip())))
        else:
            number = cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
        if self.counting:
            self.counting = number in (self.values - 1, self.values)
        if number is None:
            return False
        self.is_integer = self.is_integer and isinstance(number, int)
        is_whole = isinstance(number, int) or (abs(number) < _MOST_EXACT_FLOAT and number == int(number))
        self.is_whole = self.is_whole and is_whole
        return True


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
