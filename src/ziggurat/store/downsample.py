"""Downsampling of very long curves inside the database, so that not all points need to be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.store.dialects import read_columns
from ziggurat.store.tables import points

__all__ = ["minmax_columns"]


def minmax_columns(
    connection: Connection, curve_key: int, since_step: int, *, parts: int
) -> list[Sequence[float | None]]:
    """Return steps, values, epochs and times of the points that tell the shape of a curve, by step.

    The range of steps is divided into equal parts; of each, a smallest, a largest and the first NaN value are among
    them, besides the first and the last point.

    Args:
        connection: to read from.
        curve_key: of the curve.
        since_step: only points of later steps; there is one at least.
        parts: how many.
    """
    mine = (points.c.curve_key == curve_key, points.c.step > since_step)
    # Each end for itself: to find both in one query, SQLite goes through all points.
    smallest = sa.select(sa.func.min(points.c.step)).where(*mine).scalar_subquery()
    largest = sa.select(sa.func.max(points.c.step)).where(*mine).scalar_subquery()
    first, last = connection.execute(sa.select(smallest, largest)).one()
    # One statement that the database counts the parts in: to tell it thousands of borders and to ask again for
    # thousands of steps takes longer than to look at the points.
    telling = _telling_steps(curve_key, first, last, width=-(-(last + 1 - first) // parts))
    columns: list[Any] = [points.c.step, points.c.value, points.c.epoch, points.c.time]
    query = sa.select(*columns).where(points.c.curve_key == curve_key, points.c.step.in_(telling))
    return read_columns(connection, query.order_by(points.c.step))


def _telling_steps(curve_key: int, first: int, last: int, *, width: int) -> sa.Select[Any]:
    """Return a query for the steps; parts begin at ``first`` and are ``width`` steps wide."""
    lows = sa.select(_whole(first).label("low")).cte("part", recursive=True)
    following = lows.c.low + _whole(width)
    part = lows.union_all(sa.select(following).where(following <= _whole(last)))
    end = part.c.low + _whole(width)
    inside = (points.c.curve_key == curve_key, points.c.step >= part.c.low, points.c.step < end)
    step = sa.select(points.c.step).where(*inside).limit(1).correlate(part)
    known = step.where(points.c.value.is_not(None))
    picks = (known.order_by(points.c.value, points.c.step), known.order_by(points.c.value.desc(), points.c.step))
    of_parts = [sa.select(pick.scalar_subquery().label("step")).select_from(part) for pick in picks]
    number = (points.c.step - _whole(first)) // _whole(width)
    missing = (points.c.curve_key == curve_key, points.c.step >= _whole(first), points.c.value.is_(None))
    gaps = sa.select(sa.func.min(points.c.step).label("step")).where(*missing).group_by(number)
    ends = [sa.select(_whole(step).label("step")) for step in (first, last)]
    return sa.select(sa.union_all(*of_parts, gaps, *ends).subquery("telling").c.step)


def _whole(number: int) -> sa.Cast[int]:
    return sa.cast(number, sa.BigInteger)
