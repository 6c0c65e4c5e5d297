"""Names that filters of jobs may use: fields of specs, facts of datasets, curves, with the range of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from ziggurat.specs import known_paths
from ziggurat.store.database import Database
from ziggurat.store.dialects import bytewise
from ziggurat.store.tables import clean_text, curves, jobs, spec_values

__all__ = ["JobNameRepository", "NameRange"]

_MOST_NAMES: Final = 2000
_MOST_VALUES: Final = 6


@dataclass(frozen=True, kw_only=True)
class NameRange:
    """Values of a name.

    Args:
        minimum: smallest number; None if no value is a number.
        maximum: largest number.
        texts: the first few texts.
        is_curve: whether it is the newest value of a curve.
    """

    minimum: float | None = None
    maximum: float | None = None
    texts: tuple[str, ...] = ()
    is_curve: bool = False


class JobNameRepository:
    """The names; every method reads one moment.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, names: Iterable[str]) -> dict[str, bool]:
        """Return which of these names a spec, the facts of a dataset or a curve has → whether any value is a text."""
        found: dict[str, bool] = {}
        with self._database.read() as connection:
            for name in names:
                named = spec_values.c.name.in_(known_paths(clean_text(name)))
                parts = ((named,), (named, spec_values.c.text.is_not(None)), (curves.c.tag == clean_text(name),))
                row = connection.execute(sa.select(*(sa.exists().where(*each) for each in parts))).one()
                if row[0] or row[2]:
                    found[name] = bool(row[1])
        return found

    def all(self) -> list[str]:
        """Return the names of all fields, facts and curves that any job has."""
        with self._database.read() as connection:
            fields = _distinct(connection, spec_values.c.name)
            return sorted({*fields, *_distinct(connection, curves.c.tag)})

    def ranges(self, names: Sequence[str]) -> Mapping[str, NameRange]:
        """Return name → the range of its values; names without a value are left out."""
        found: dict[str, NameRange] = {}
        with self._database.read() as connection:
            for name in names:
                value = _range_of(connection, clean_text(name))
                if value is not None:
                    found[name] = value
        return found

    def texts_of(self, column: str, limit: int = _MOST_VALUES) -> list[str]:
        """Return the first values of a column of jobs, such as ``network``, sorted, without the empty one."""
        own = jobs.c[column]
        query = sa.select(own).where(own != "").group_by(own).order_by(bytewise(own)).limit(limit)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())


def _distinct(connection: Connection, column: ColumnElement[str]) -> list[str]:
    """Return the distinct values of an indexed column by jumps from one value to the next (a loose index scan).

    Reading the whole index would take time in proportion to the number of jobs.
    """
    first = sa.select(sa.func.min(column).label("value")).cte("name", recursive=True)
    following = sa.select(sa.func.min(column)).where(column > first.c.value).scalar_subquery()
    names = first.union_all(sa.select(following).where(first.c.value.is_not(None)))
    query = sa.select(names.c.value).where(names.c.value.is_not(None)).limit(_MOST_NAMES)
    return list(connection.execute(query).scalars())


def _range_of(connection: Connection, name: str) -> NameRange | None:
    named = spec_values.c.name.in_(known_paths(name))
    smallest, largest = connection.execute(
        sa.select(sa.func.min(spec_values.c.number), sa.func.max(spec_values.c.number)).where(named)
    ).one()
    texts = _texts(connection, named) if smallest is None else ()
    if smallest is not None or texts:
        return NameRange(minimum=smallest, maximum=largest, texts=texts)
    extremes = sa.select(sa.func.min(curves.c.last), sa.func.max(curves.c.last)).where(curves.c.tag == name)
    smallest, largest = connection.execute(extremes).one()
    return None if smallest is None else NameRange(minimum=smallest, maximum=largest, is_curve=True)


def _texts(connection: Connection, named: ColumnElement[bool]) -> tuple[str, ...]:
    text = spec_values.c.text
    query = sa.select(text).where(named, text.is_not(None)).group_by(text).order_by(bytewise(text)).limit(_MOST_VALUES)
    return tuple(connection.execute(query).scalars())
