"""Read queries for job results: curves, attempts, checkpoints, messages; long curves are downsampled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from ziggurat.entities import Attempt, Checkpoint, Curve, ScalarSummary
from ziggurat.entities.arithmetic import AttemptArithmetic
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.events import Message
from ziggurat.store.database import Database
from ziggurat.store.dialects import bytewise, read_columns
from ziggurat.store.events import MESSAGES_KEPT
from ziggurat.store.job_rows import ARITHMETIC, key_of
from ziggurat.store.tables import attempts, checkpoints, curves, job_contents, jobs, messages, points

__all__ = [
    "CurveRepository",
    "Outline",
    "thin",
]


_T = TypeVar("_T")

_LOADED_AT_MOST: Final = 20_000
_MOST: Final = 1 << 62
_LARGEST: Final = 1e300
_OUTLINE_PARTS: Final = 40
_CURVES_KEPT: Final = 4096
_HEAD: Final = (curves.c.key, curves.c.tag, curves.c["count"].label("total"))


Outline = tuple[tuple[int, float], ...]
"""Step and value of some points, by step."""

_CurveState = tuple[str, str, int, int, float]
"""Job, tag, number of points, last step and last value: equal only while a curve has not changed."""


class CurveRepository:
    """What jobs came to; every method reads one moment.

    Args:
        database: where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._outlines: dict[_CurveState, Outline | None] = {}
        self._extremes: dict[bool, dict[_CurveState, tuple[int, int, float] | None]] = {False: {}, True: {}}

    def tags(self, job_id: str) -> list[str]:
        """Return the names of the curves of a job, in the order of their letters.

        Raises:
            JobError: where there is no such job.
        """
        with self._database.read() as connection:
            return sorted(_curves_of(connection, job_id))

    def curve(self, job_id: str, tag: str, *, since_step: int = -1, max_points: int = 2000) -> Curve:
        """Return a curve; see ``some``."""
        return self.some(job_id, (tag,), since_step=since_step, max_points=max_points)[0]

    def some(
        self, job_id: str, tags: Iterable[str] = (), *, since_step: int = -1, max_points: int = 2000
    ) -> list[Curve]:
        """Return curves of a job.

        Args:
            job_id: whose.
            tags: their names, in the order of the answer; empty for all, in the order of their letters.
            since_step: only points of later steps.
            max_points: at most so many of each; of more, ends, extremes and NaN stay (see ``thin``).

        Raises:
            JobError: where there is no such job.
            UnknownNameError: where it has no such curve.
            UsageError: where ``max_points`` is less than 5.
        """
        _check(max_points)
        with self._database.read() as connection:
            known = _curves_of(connection, job_id)
            wanted = list(tags) or sorted(known)
            unknown = [tag for tag in wanted if tag not in known]
            if unknown:
                raise UnknownNameError("curve of the job", unknown[0], known)
            return [_read(connection, known[tag], since_step, max_points) for tag in wanted]

    def many(
        self, job_ids: Iterable[str], tag: str, *, since_step: int = -1, max_points: int = 2000
    ) -> dict[str, Curve]:
        """Return the curves of that name by job; jobs that have none, or are not there, are left out.

        Args:
            job_ids: whose, in the order of the answer.
            tag: name of the curves.
            since_step: only points of later steps.
            max_points: at most so many of each.

        Raises:
            UsageError: where ``max_points`` is less than 5.
        """
        _check(max_points)
        wanted = list(dict.fromkeys(job_ids))
        query = sa.select(jobs.c.id, *_HEAD).join(curves).where(jobs.c.id.in_(wanted), curves.c.tag == tag)
        with self._database.read() as connection:
            found = {row.id: row for row in connection.execute(query)}
            return {
                job_id: _read(connection, found[job_id], since_step, max_points) for job_id in wanted if job_id in found
            }

    def extremes(self, wanted: Mapping[str, ScalarSummary], *, largest: bool) -> dict[str, tuple[int, int, float]]:
        """Return job → (step, epoch, value) of the best point of one of its curves, the earliest of equals.

        What was measured before the first step is of an untrained network and does not count. Jobs without such a
        point are left out. Points are cached until their curves change; others are read by one query.

        Args:
            wanted: job → summary of its curve.
            largest: whether large values are good.
        """
        return _cached(self._extremes[largest], wanted, lambda missing: self._read_extremes(missing, largest=largest))

    def _read_extremes(self, wanted: Sequence[tuple[str, str]], *, largest: bool) -> dict[str, tuple[int, int, float]]:
        own = points.alias()
        extreme = sa.func.max(own.c.value) if largest else sa.func.min(own.c.value)
        # Grouped once: as a subquery of each point, SQLite reads a long curve again for every point of it.
        best = (
            sa.select(own.c.curve_key, extreme.label("value"))
            .select_from(jobs.join(curves).join(own, own.c.curve_key == curves.c.key))
            .where(sa.tuple_(jobs.c.id, curves.c.tag).in_(wanted), own.c.step > 0)
            .group_by(own.c.curve_key)
            .subquery()
        )
        is_best = sa.and_(best.c.curve_key == points.c.curve_key, best.c.value == points.c.value)
        query = (
            sa.select(jobs.c.id, points.c.step, points.c.epoch, points.c.value)
            .select_from(jobs.join(curves).join(points).join(best, is_best))
            .where(points.c.step > 0)
            .order_by(points.c.step.desc())
        )
        with self._database.read() as connection:
            return {row.id: (row.step, row.epoch, row.value) for row in connection.execute(query)}

    def outlines(self, wanted: Mapping[str, ScalarSummary]) -> dict[str, Outline]:
        """Return job → outline of one of its curves, by at most one query for all of them.

        The steps of each curve are divided into equal parts; a point of the outline has the first step of a part and
        the mean of its finite values. Outlines are cached until their curves change.

        Args:
            wanted: job → summary of its curve; jobs without a point are left out.
        """
        return _cached(self._outlines, wanted, self._read_outlines)

    def _read_outlines(self, wanted: Sequence[tuple[str, str]]) -> dict[str, Outline]:
        part = points.c.step // (curves.c.last_step // sa.literal(_OUTLINE_PARTS, sa.BigInteger) + 1)
        first = sa.func.min(points.c.step)
        query = (
            sa.select(jobs.c.id, first, sa.func.avg(points.c.value))
            .select_from(jobs.join(curves).join(points))
            .where(sa.tuple_(jobs.c.id, curves.c.tag).in_(wanted))
            .where(points.c.value.between(-_LARGEST, _LARGEST))
            .group_by(jobs.c.id, part)
            .order_by(jobs.c.id, first)
        )
        found: dict[str, list[tuple[int, float]]] = {}
        with self._database.read() as connection:
            for job_id, step, value in connection.execute(query):
                found.setdefault(job_id, []).append((step, value))
        return {job_id: tuple(outline) for job_id, outline in found.items()}

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts of a job, the first one first.

        Raises:
            JobError: where there is no such job.
        """
        found = [Attempt(**_own(row)) for row in self._of_job(attempts, job_id, attempts.c.number)]
        (contents,) = self._of_job(job_contents, job_id)
        recorded = {
            int(number): AttemptArithmetic(**values) for number, values in contents["facts"].get(ARITHMETIC, {}).items()
        }
        return [replace(each, arithmetic=recorded.get(each.number)) for each in found]

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Return the checkpoints of a job by step.

        Raises:
            JobError: where there is no such job.
        """
        rows = self._of_job(checkpoints, job_id, checkpoints.c.step, bytewise(checkpoints.c.name))
        return [Checkpoint(**_own(row)) for row in rows]

    def messages(self, job_id: str, *, levels: Sequence[str] = (), limit: int = 1000) -> list[Message]:
        """Return the newest messages of a job, in the order in which they were said.

        Args:
            job_id: whose.
            levels: only of these levels; empty for all.
            limit: at most so many.

        Raises:
            JobError: where there is no such job.
        """
        question = ("messages", job_id, tuple(levels), limit)
        return list(self._database.until_changed(question, lambda: self._messages(job_id, levels, limit)))

    def _messages(self, job_id: str, levels: Sequence[str], limit: int) -> list[Message]:
        with self._database.read() as connection:
            query = sa.select(messages).where(messages.c.job_key == key_of(connection, job_id))
            if levels:
                query = query.where(messages.c.level.in_(list(levels)))
            rows = connection.execute(
                query.order_by(messages.c.key.desc()).limit(min(max(0, limit), MESSAGES_KEPT))
            ).all()
        return [Message(time=row.time, level=row.level, text=row.text, step=row.step) for row in reversed(rows)]

    def _of_job(self, table: sa.Table, job_id: str, *order: Any) -> list[RowMapping]:
        def ask() -> list[RowMapping]:
            with self._database.read() as connection:
                query = sa.select(table).where(table.c.job_key == key_of(connection, job_id)).order_by(*order)
                return list(connection.execute(query).mappings())

        return self._database.until_changed((table.name, job_id), ask)


def _check(max_points: int) -> None:
    if max_points < FEWEST_POINTS:
        raise UsageError(f"A curve cannot be thinned to {max_points} points: {FEWEST_POINTS} is the least.")


def _own(row: RowMapping) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "job_key"}


def _curves_of(connection: Connection, job_id: str) -> dict[str, Any]:
    """Return the curves of a job by name, each as ``_HEAD`` has it."""
    rows = connection.execute(sa.select(*_HEAD).where(curves.c.job_key == key_of(connection, job_id)))
    return {row.tag: row for row in rows}


def _read(connection: Connection, curve: Any, since_step: int, max_points: int) -> Curve:
    since_step = max(-1, min(since_step, _MOST))
    mine = (points.c.curve_key == curve.key, points.c.step > since_step)
    total, most = curve.total, max(_LOADED_AT_MOST, 10 * max_points)
    if since_step >= 0 and total > most:
        total = connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
    if total > most:
        columns = minmax_columns(connection, curve.key, since_step, parts=(max_points - 2) // 3)
    else:
        wanted = sa.select(points.c.step, points.c.value, points.c.epoch, points.c.time)
        columns = read_columns(connection, wanted.where(*mine).order_by(points.c.step))
        total = len(columns[0]) if columns else 0
    return _thinned(curve.tag, columns, total, max_points)


def _thinned(tag: str, columns: Sequence[Sequence[Any]], total: int, max_points: int) -> Curve:
    steps, values, epochs, times = columns or ((), (), (), ())
    numbers = np.array(values, np.float64)  # None, which stands for NaN, becomes NaN
    kept = thin(numbers, max_points)
    return Curve(
        tag=tag,
        steps=np.array(steps, np.int64)[kept],
        values=numbers[kept],
        epochs=np.array(epochs, np.int64)[kept].astype(np.int32),
        times=np.array(times, np.float64)[kept],
        total=total,
    )


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


FEWEST_POINTS = 5
"""A curve cannot be thinned to fewer: its ends, its smallest and its largest value, and a NaN."""


def thin(values: np.ndarray, max_points: int) -> np.ndarray:
    """Return which points of a curve to keep.

    The points are divided into buckets of equal counts; of each, the first smallest, the first largest and the first
    NaN value stay, besides the first and the last point of the curve.

    Args:
        values: (N,) float64, in the order of the steps; NaN and infinities may be among them.
        max_points: at most so many stay; 5 or more.

    Returns:
        (M,) int64, ascending positions in ``values``; all N where N is no more than ``max_points``.

    Raises:
        UsageError: where ``max_points`` is less than 5.
    """
    if max_points < FEWEST_POINTS:
        raise UsageError(f"A curve cannot be thinned to {max_points} points: {FEWEST_POINTS} is the least.")
    count = len(values)
    if count <= max_points:
        return np.arange(count)
    buckets = (max_points - 2) // 3
    starts = np.arange(buckets) * count // buckets
    missing = np.isnan(values)
    kept = [np.array([0, count - 1])]
    for extreme, stand_in in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        comparable = np.where(missing, stand_in, values)
        extremes = _spread(extreme.reduceat(comparable, starts), starts, count)
        kept.append(_first_where((comparable == extremes) & ~missing, starts))
    kept.append(_first_where(missing, starts))
    return np.unique(np.concatenate(kept))


def _spread(of_buckets: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    return np.repeat(of_buckets, np.diff(starts, append=count))


def _first_where(wanted: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the first wanted position of each bucket; a bucket without one has none."""
    positions = np.flatnonzero(wanted)
    owners = np.searchsorted(starts, positions, side="right") - 1
    _, first = np.unique(owners, return_index=True)
    return positions[first]


def _cached(
    cache: dict[_CurveState, _T | None],
    wanted: Mapping[str, ScalarSummary],
    read: Callable[[Sequence[tuple[str, str]]], Mapping[str, _T]],
) -> dict[str, _T]:
    """Return job → what is known of its curve; ``read`` gets job and tag of the curves that are not in the cache."""
    states = {job_id: (job_id, each.tag, each.count, each.last_step, each.last) for job_id, each in wanted.items()}
    missing = [state for state in states.values() if state not in cache]
    if missing:
        found = read([state[:2] for state in missing])
        cache.update({state: found.get(state[0]) for state in missing})
        for state in list(cache)[: max(0, len(cache) - _CURVES_KEPT)]:
            cache.pop(state, None)
    return {job_id: known for job_id, state in states.items() if (known := cache.get(state)) is not None}
