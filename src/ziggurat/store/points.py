"""Writes of curve points: obsolete points are deleted, new ones inserted, and curve summaries updated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from ziggurat.store.columns import number_or_none
from ziggurat.store.dialects import write_rows
from ziggurat.store.event_batch import Point
from ziggurat.store.tables import curves, points

__all__ = ["write_points"]

_MOST_CURVES: Final = 5000
"""Curves that one job may have; a job that names more has a mistake, and further ones are left out."""

_SQLITE = "INSERT OR REPLACE INTO points (curve_key, step, value, epoch, time) VALUES (?, ?, ?, ?, ?)"
_POSTGRESQL = (
    "INSERT INTO points (curve_key, step, value, epoch, time)"
    " SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::float8[])"
    " ON CONFLICT (curve_key, step)"
    " DO UPDATE SET value = excluded.value, epoch = excluded.epoch, time = excluded.time"
)
_SQLITE_SUMMARIES = "UPDATE curves SET last = ?, minimum = ?, maximum = ?, count = ?, last_step = ? WHERE key = ?"
_POSTGRESQL_SUMMARIES = (
    "UPDATE curves SET last = new.last, minimum = new.minimum, maximum = new.maximum, count = new.count,"
    " last_step = new.last_step FROM unnest(%s::float8[], %s::float8[], %s::float8[], %s::bigint[], %s::bigint[],"
    " %s::bigint[]) AS new (last, minimum, maximum, count, last_step, key) WHERE curves.key = new.key"
)


def write_points(connection: Connection, job_key: int, cut: int | None, new: Mapping[str, Mapping[int, Point]]) -> None:
    """Write the points of one job.

    Args:
        connection: inside a transaction that may write.
        job_key: of the job.
        cut: stored points of later steps are removed first; None for none.
        new: tag → step → point; one that is stored already for that step is replaced.
    """
    mine = sa.select(curves).where(curves.c.job_key == job_key)
    known = {row["tag"]: row for row in connection.execute(mine).mappings()}
    stale: set[int] = set()
    if cut is not None:
        stale = _remove_later(connection, known.values(), cut)
    keys = {tag: row["key"] for tag, row in known.items()}
    keys |= _add_curves(
        connection, job_key, [tag for tag in new if tag not in keys][: max(0, _MOST_CURVES - len(keys))]
    )
    written = {tag: part for tag, part in new.items() if tag in keys}
    rows = [
        (keys[tag], step, number_or_none(value), epoch, time)
        for tag, part in written.items()
        for step, (value, epoch, time) in part.items()
    ]
    write_rows(connection, rows, sqlite=_SQLITE, postgresql=_POSTGRESQL)
    summaries = []
    for tag, part in written.items():
        old = known.get(tag)
        if keys[tag] in stale or (old is not None and min(part) <= old["last_step"]):
            stale.add(keys[tag])
        else:
            summaries.append(_extended(old, keys[tag], part))
    write_rows(connection, summaries, sqlite=_SQLITE_SUMMARIES, postgresql=_POSTGRESQL_SUMMARIES)
    for key in stale:
        _recompute(connection, key)


def _add_curves(connection: Connection, job_key: int, tags: list[str]) -> dict[str, int]:
    if not tags:
        return {}
    rows = [{"job_key": job_key, "tag": tag, "count": 0, "last_step": -1} for tag in tags]
    made = connection.execute(sa.insert(curves).returning(curves.c.tag, curves.c.key), rows)
    return {row.tag: row.key for row in made}


def _remove_later(connection: Connection, known: Iterable[RowMapping], cut: int) -> set[int]:
    stale = {row["key"] for row in known if row["last_step"] > cut}
    for key in stale:
        connection.execute(sa.delete(points).where(points.c.curve_key == key, points.c.step > cut))
    return stale


def _extended(old: RowMapping | None, key: int, part: Mapping[int, Point]) -> tuple[float | None, ...]:
    """Return a summary in the order in which the statements above take it."""
    last_step = max(part)
    values = [value for value, _, _ in part.values() if not math.isnan(value)]
    if old is not None:
        values += [value for value in (old["minimum"], old["maximum"]) if value is not None]
    count = len(part) + (old["count"] if old is not None else 0)
    last = number_or_none(part[last_step][0])
    return last, min(values, default=None), max(values, default=None), count, last_step, key


def _recompute(connection: Connection, key: int) -> None:
    mine = points.c.curve_key == key
    parts = (sa.func.count(), sa.func.min(points.c.value), sa.func.max(points.c.value), sa.func.max(points.c.step))
    count, minimum, maximum, last_step = connection.execute(sa.select(*parts).where(mine)).one()
    if count == 0:
        connection.execute(sa.delete(curves).where(curves.c.key == key))
        return
    last = connection.execute(sa.select(points.c.value).where(mine, points.c.step == last_step)).scalar()
    row = {"last": last, "minimum": minimum, "maximum": maximum, "count": count, "last_step": last_step}
    connection.execute(sa.update(curves).where(curves.c.key == key).values(row))
