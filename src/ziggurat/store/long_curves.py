"""Owns how a curve of very many points is thinned inside the database, so that they need not all be loaded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.store.tables import points

__all__ = ["telling_rows"]

_CHUNK = 500


def telling_rows(connection: Connection, curve_key: int, since_step: int, *, buckets: int) -> list[Any]:
    """Return (step, value, epoch, time) of the points that tell the shape of a curve, by step.

    The range of steps is divided into equal parts; of each, a smallest, a largest and the first NaN value are among
    them, besides the first and the last point.

    Args:
        connection: to read from.
        curve_key: of the curve.
        since_step: only points of later steps.
        buckets: how many parts.
    """
    mine = (points.c.curve_key == curve_key, points.c.step > since_step)
    first, last = connection.execute(
        sa.select(sa.func.min(points.c.step), sa.func.max(points.c.step)).where(*mine)
    ).one()
    borders = sorted({first + (last + 1 - first) * number // buckets for number in range(buckets + 1)})
    steps = {first, last}
    for start in range(0, len(borders) - 1, _CHUNK):
        chunk = borders[start : start + _CHUNK + 1]
        steps.update(step for step in _extremes(connection, curve_key, chunk) if step is not None)
    return _rows(connection, curve_key, sorted(steps))


def _extremes(connection: Connection, curve_key: int, borders: list[int]) -> list[int | None]:
    part = sa.values(sa.column("low", sa.BigInteger), sa.column("high", sa.BigInteger), name="parts")
    part = part.data(list(pairwise(borders))).cte("part")
    inside = (points.c.curve_key == curve_key, points.c.step >= part.c.low, points.c.step < part.c.high)
    step = sa.select(points.c.step).where(*inside).limit(1).correlate(part)
    known = step.where(points.c.value.is_not(None))
    picks = (
        known.order_by(points.c.value, points.c.step),
        known.order_by(points.c.value.desc(), points.c.step),
        step.where(points.c.value.is_(None)).order_by(points.c.step),
    )
    query = sa.select(*(pick.scalar_subquery() for pick in picks)).select_from(part)
    return [found for row in connection.execute(query) for found in row]


def _rows(connection: Connection, curve_key: int, steps: list[int]) -> list[Any]:
    columns = (points.c.step, points.c.value, points.c.epoch, points.c.time)
    rows: list[Any] = []
    for start in range(0, len(steps), _CHUNK):
        chosen = points.c.step.in_(steps[start : start + _CHUNK])
        query = sa.select(*columns).where(points.c.curve_key == curve_key, chosen).order_by(points.c.step)
        rows += connection.execute(query).all()
    return rows
