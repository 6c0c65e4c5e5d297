"""Translation of a job filter into a query: which jobs match, and in which order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Select

from ziggurat.entities import JOB_STATES, JobFilter
from ziggurat.errors import UnknownNameError
from ziggurat.store.columns import clean_text
from ziggurat.store.dialects import bytewise, position_in
from ziggurat.store.tables import curves, job_tags, job_texts, jobs, spec_values

__all__ = ["chosen_jobs", "in_order"]

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
_NUMBERS: Final = ("priority", "created", "started", "ended", "attempt", "epoch", "global_step", "steps_per_s")
_TEXTS: Final = ("kind", "name", "id", "project", "owner", "framework", "network", "group", "parent")
_GROUPS: Final = ("project", "group")
_NEVER_MISSING: Final = frozenset({"state", "priority", "created", "attempt", "epoch", "global_step", *_TEXTS})


def chosen_jobs(connection: Connection, wanted: JobFilter, now: float) -> Select[Any]:
    """Return the keys of the jobs that a filter leaves, in no order.

    Args:
        connection: to look up what names stand for.
        wanted: the filter.
        now: seconds since 1970, for jobs that are under way.

    Raises:
        UnknownNameError: where a condition compares in a way that there is not.
    """
    query = sa.select(jobs.c.key)
    if wanted.kinds:
        query = query.where(jobs.c.kind.in_(wanted.kinds))
    if wanted.states:
        query = query.where(jobs.c.state.in_(wanted.states))
    if wanted.project is not None:
        query = query.where(jobs.c.project == wanted.project)
    for column, word in ((jobs.c.group, wanted.group), (jobs.c.owner, wanted.owner)):
        if word:
            query = query.where(column == word)
    if wanted.tag:
        query = query.where(jobs.c.key.in_(sa.select(job_tags.c.job_key).where(job_tags.c.tag == wanted.tag)))
    if wanted.text:
        words = clean_text(wanted.text).casefold()
        query = query.join(job_texts).where(position_in(job_texts.c.text, words) > 0)
    for name, comparison, value in wanted.conditions:
        query = query.where(_condition(connection, clean_text(name), comparison, value, now))
    return query


def in_order(connection: Connection, query: Select[Any], wanted: JobFilter, now: float) -> Select[Any]:
    """Return the query with the order that the filter asks for.

    Numbers stand before texts, jobs without a value last; among equals the newest comes first, then by id.

    Args:
        connection: to look up what the name stands for.
        query: as ``chosen_jobs`` returns it.
        wanted: the filter.
        now: seconds since 1970, for jobs that are under way.
    """
    if wanted.group_by in _GROUPS:
        together = bytewise(jobs.c[wanted.group_by])
        query = query.order_by(together == "", together)  # false, where there is one, stands before true
    name = clean_text(wanted.sort)
    own = _own_value(name, now)
    if own is None:
        query, values = _with_stored_values(connection, query, name)
    else:
        values = [own]
    for value in values:
        if name not in _NEVER_MISSING:
            query = query.order_by(value.is_(None))  # false, where there is a value, stands before true
        query = query.order_by(value.desc() if wanted.descending else value.asc())
    if name != "created":
        query = query.order_by(jobs.c.created.desc())
    return query.order_by(bytewise(jobs.c.id).desc())


def _with_stored_values(
    connection: Connection, query: Select[Any], name: str
) -> tuple[Select[Any], list[ColumnElement[Any]]]:
    in_specs, has_text, is_curve = _meanings(connection, name)
    if in_specs:
        mine = sa.and_(spec_values.c.job_key == jobs.c.key, spec_values.c.name == name)
        query = query.outerjoin(spec_values, mine)
    if is_curve:
        query = query.outerjoin(curves, sa.and_(curves.c.job_key == jobs.c.key, curves.c.tag == name))
    number = curves.c.last if is_curve else spec_values.c.number if in_specs else None
    if is_curve and in_specs:
        number = sa.case((spec_values.c.job_key.is_not(None), spec_values.c.number), else_=curves.c.last)
    values: list[ColumnElement[Any]] = [] if number is None else [number]
    return query, [*values, bytewise(spec_values.c.text)] if has_text else values


def _meanings(connection: Connection, name: str) -> tuple[bool, bool, bool]:
    """Return whether any spec has the name, any as a text, and any job such a curve.

    Asking costs microseconds; each join or subquery that can bring nothing costs milliseconds with 10,000 jobs.
    """
    named = spec_values.c.name == name
    parts = ((named,), (named, spec_values.c.text.is_not(None)), (curves.c.tag == name,))
    found = connection.execute(sa.select(*(sa.exists().where(*conditions) for conditions in parts))).one()
    return bool(found[0]), bool(found[1]), bool(found[2])


def _own_value(name: str, now: float) -> ColumnElement[Any] | None:
    if name == "elapsed":
        return sa.func.coalesce(jobs.c.ended, now) - jobs.c.started
    if name == "state":
        order = {state: place for place, state in enumerate(JOB_STATES)}
        return sa.case(order, value=jobs.c.state, else_=len(order))
    if name in _NUMBERS:
        return jobs.c[name]
    if name == "name":
        return sa.func.lower(bytewise(jobs.c.name))  # of ASCII letters only, in every database
    return bytewise(jobs.c[name]) if name in _TEXTS else None


def _condition(connection: Connection, name: str, comparison: str, value: Any, now: float) -> ColumnElement[bool]:
    compare = _COMPARISONS.get(comparison)
    if compare is None:
        raise UnknownNameError("comparison", comparison, _COMPARISONS)
    wanted = _comparable(value)
    if wanted is None:
        return sa.false()
    if name == "state" or name in _TEXTS:
        return compare(bytewise(jobs.c[name]), wanted) if isinstance(wanted, str) else sa.false()
    own = _own_value(name, now)
    if own is not None:
        return compare(own, wanted) if isinstance(wanted, float) else sa.false()
    in_specs, _, is_curve = _meanings(connection, name)
    named = spec_values.c.name == name
    stored = bytewise(spec_values.c.text) if isinstance(wanted, str) else spec_values.c.number
    in_spec = jobs.c.key.in_(sa.select(spec_values.c.job_key).where(named, compare(stored, wanted)))
    if isinstance(wanted, str) or not is_curve:
        return in_spec
    on_curve = jobs.c.key.in_(sa.select(curves.c.job_key).where(curves.c.tag == name, compare(curves.c.last, wanted)))
    if not in_specs:
        return on_curve
    return in_spec | (on_curve & jobs.c.key.not_in(sa.select(spec_values.c.job_key).where(named)))


def _comparable(value: Any) -> float | str | None:
    if isinstance(value, str):
        return clean_text(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number
