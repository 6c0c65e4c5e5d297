"""Import plan of a table: the target and the reason for it, column types, and conversion of cells to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.datasets.formats.table.dialect import number_of
from ziggurat.datasets.formats.table.types import BOOLEANS, MOST_CATEGORIES, ColumnProfile, time_of
from ziggurat.errors import DataError
from ziggurat.records.schema import Column

__all__ = ["ColumnPlan", "Target", "choose_target", "class_numbers", "plan_column", "twins"]

_USUAL_TARGETS: Final = ("target", "label", "survived", "outcome", "y", "diagnosis", "species", "churn")
"""Names that columns have only where they are the target, in lower case, the likeliest first."""

_LIKELY_TARGETS: Final = ("class", "salary", "output", "response")
"""Names that other columns may have too: a ``class`` may be that of a cabin, and then repeats its number."""

_MOST_WHOLE_CLASSES: Final = 10


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
    """Return the target of a table, None where nobody wants one.

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
