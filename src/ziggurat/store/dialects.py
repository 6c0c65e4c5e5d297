"""SQL expressions that differ between SQLite and PostgreSQL, and bulk reads and writes of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Integer, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

__all__ = ["bytewise", "position_in", "read_columns", "write_rows"]


class bytewise(GenericFunction[str]):  # noqa: N801 - reads as a function of SQL
    """A text that is compared and sorted by code points, whatever the locale of the database."""

    type = Text()
    inherit_cache = True


class position_in(GenericFunction[int]):  # noqa: N801 - reads as a function of SQL
    """Where in a text, from 1, another text begins; 0 where it does not."""

    type = Integer()
    inherit_cache = True


def write_rows(
    connection: Connection, rows: Sequence[tuple[float | None, ...]], *, sqlite: str, postgresql: str
) -> None:
    """Run one statement for many rows of numbers.

    The driver of PostgreSQL would send row by row, each in three round trips: it gets the columns as arrays instead.

    Args:
        connection: inside a transaction that may write.
        rows: of numbers, all of one length; without any, nothing happens.
        sqlite: statement that takes one row.
        postgresql: statement that takes one array for each column, as text.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(sqlite, list(rows))
    else:
        connection.exec_driver_sql(postgresql, tuple(map(_array, zip(*rows))))


def read_columns(connection: Connection, query: sa.Select[*tuple[Any, ...]]) -> list[Sequence[float | None]]:
    """Return the columns of what a query of numbers finds, in its order.

    The driver of PostgreSQL takes ten times as long for a row as SQLite: it gets each column as one text instead.
    """
    if connection.dialect.name == "sqlite":
        return list(zip(*connection.execute(query).all()))
    found = query.subquery()
    arrays = sa.select(*(sa.cast(sa.func.array_agg(column), sa.Text) for column in found.c))
    kinds = [int if isinstance(column.type, sa.Integer) else float for column in found.c]
    texts = connection.execute(arrays).one()
    return [_numbers(text, kind) for text, kind in zip(texts, kinds) if text is not None]


def _numbers(array: str, kind: Callable[[str], float]) -> list[float | None]:
    parts = array[1:-1].split(",")
    if "NULL" in array:
        return [None if part == "NULL" else kind(part) for part in parts]
    return list(map(kind, parts))


def _array(column: Sequence[float | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"


@compiles(bytewise)
def _plain(element: Any, compiler: Any, **options: Any) -> str:
    return compiler.process(next(iter(element.clauses)), **options)


@compiles(bytewise, "postgresql")
def _collated(element: Any, compiler: Any, **options: Any) -> str:
    return f'({compiler.process(next(iter(element.clauses)), **options)} COLLATE "C")'


@compiles(position_in)
def _instr(element: Any, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(position_in, "postgresql")
def _strpos(element: Any, compiler: Any, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"
