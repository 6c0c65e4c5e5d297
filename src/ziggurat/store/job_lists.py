"""Queries of job lists: pinned jobs, one entry per sweep, the best training of each dataset."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Select

from ziggurat.entities import ACTIVE_STATES, Listing, SweepSummary
from ziggurat.entities.best_checkpoint import Mode, is_better, primary_metric, primary_tags
from ziggurat.entities.jobs import DIVERGED
from ziggurat.specs import known_paths
from ziggurat.store.job_rows import outcome_column
from ziggurat.store.tables import curves, dependencies, jobs, spec_values

__all__ = ["listed_jobs", "pinned_keys", "sweep_summaries"]

_MOST_ACTIVE: Final = 50


def pinned_keys(connection: Connection, chosen: Select[Any], listed: Select[Any], listing: Listing) -> list[int]:
    """Return the keys of the pinned jobs: active ones, then the next ones of the queue.

    Args:
        connection: to read from.
        chosen: keys of the jobs that match a filter.
        listed: keys of the entries of the list, see ``listed_jobs``; a sweep is pinned if any of its jobs is.
        listing: says how many jobs of the queue are pinned.
    """
    if not listing.pinned:
        return []
    columns = chosen.add_columns(jobs.c.group)
    active = columns.where(jobs.c.state.in_(ACTIVE_STATES)).order_by(jobs.c.started, jobs.c.key).limit(_MOST_ACTIVE)
    queued = columns.where(jobs.c.state == "queued").order_by(jobs.c.priority.desc(), jobs.c.position, jobs.c.key)
    found: list[Any] = [*connection.execute(active), *connection.execute(queued.limit(listing.pinned))]
    firsts = _first_jobs(connection, {row.group for row in found if row.group}) if listing.one_per_sweep else {}
    keys = dict.fromkeys(firsts.get(str(row.group), int(row.key)) for row in found)
    stay = set(connection.execute(listed.where(jobs.c.key.in_(keys))).scalars()) if keys else set[int]()
    return [key for key in keys if key in stay]


def listed_jobs(connection: Connection, chosen: Select[Any], listing: Listing) -> Select[Any]:
    """Return the keys of the entries of a list, in no order.

    Args:
        connection: to read from.
        chosen: keys of the jobs that match a filter.
        listing: says which jobs represent others.
    """
    if listing.sweeps_only:
        chosen = chosen.where(jobs.c.group != "")
    if listing.one_per_sweep:
        chosen = chosen.where((jobs.c.group == "") | (jobs.c.key == _first_of(jobs.c.group)))
    if listing.best_per_dataset:
        chosen = chosen.where(jobs.c.key.in_(_best_keys(connection)))
    return chosen


def sweep_summaries(connection: Connection, groups: Sequence[str]) -> dict[str, SweepSummary]:
    """Return id of a sweep → its summary; see ``JobRepository.sweeps``."""
    if not groups:
        return {}
    rows = connection.execute(_ENDS.where(jobs.c.group.in_(groups))).all()
    best = {group: str(_best_job(found)) for group, found in _by_first(connection.execute(_curves_of(groups)).all())}
    rates = {row[0]: row[1] for row in connection.execute(_RATES.where(jobs.c.group.in_(groups)))}
    made: dict[str, SweepSummary] = {}
    for group, found in _by_first(rows):
        made[group] = SweepSummary(
            group=group,
            states={row.state: row.total for row in found},
            best_id=best.get(group, ""),
            rates=rates.get(group, 0),
            first_start=min((row.started for row in found if row.started is not None), default=None),
            diverged=sum(row.diverged for row in found),
            newest_end=None if any(row.ended is None for row in found) else max(row.ended for row in found),
        )
    return made


_ENDS: Final = (
    sa.select(
        jobs.c.group,
        jobs.c.state,
        sa.func.count().label("total"),
        sa.func.min(jobs.c.started).label("started"),
        sa.func.max(jobs.c.ended).label("ended"),
        sa.func.sum(sa.case((outcome_column() == DIVERGED, 1), else_=0)).label("diverged"),
    )
    .group_by(jobs.c.group, jobs.c.state)
    .order_by(jobs.c.group)
)
_RATES: Final = (
    sa.select(jobs.c.group, sa.func.count(spec_values.c.number.distinct()))
    .join(spec_values, spec_values.c.job_key == jobs.c.key)
    .where(spec_values.c.name.in_(known_paths("learning_rate")))
    .group_by(jobs.c.group)
)


def _curves_of(groups: Sequence[str]) -> Select[*tuple[Any, ...]]:
    columns: tuple[ColumnElement[Any], ...] = (
        jobs.c.group,
        jobs.c.id,
        curves.c.tag,
        curves.c.minimum,
        curves.c.maximum,
    )
    # By the keys of the jobs: SQLite would otherwise go through all curves of these tags.
    keys = sa.select(jobs.c.key).where(jobs.c.group.in_(groups))
    wanted = (curves.c.job_key.in_(keys), curves.c.tag.in_(primary_tags()))
    return sa.select(*columns).join(curves).where(*wanted).order_by(jobs.c.group, jobs.c.key)


def _by_first(rows: Iterable[Any]) -> Iterable[tuple[Any, list[Any]]]:
    for name, found in itertools.groupby(rows, key=lambda row: row[0]):
        yield name, list(found)


def _best_job(rows: Iterable[Any]) -> str | int:
    """Return the id or key of the best job of rows that each have one of its curves.

    Jobs are compared by the metric that most of them are judged by.
    """
    tags: dict[Any, dict[str, Any]] = {}
    for row in rows:
        tags.setdefault(row[1], {})[row.tag] = row
    judged = {job: metric for job, found in tags.items() if (metric := primary_metric(found)) is not None}
    if not judged:
        return ""
    (tag, mode), _ = Counter(judged.values()).most_common(1)[0]
    best, best_value = "", None
    for job in (each for each, metric in judged.items() if metric == (tag, mode)):
        value = _peak(tags[job][tag], mode)
        if value is not None and (best_value is None or is_better(mode, value, best_value)):
            best, best_value = job, value
    return best


def _peak(row: Any, mode: Mode) -> float | None:
    return row.maximum if mode == "max" else row.minimum


def _first_of(group: ColumnElement[str]) -> sa.ScalarSelect[int]:
    others = jobs.alias("others")
    return sa.select(sa.func.min(others.c.key)).where(others.c.group == group).scalar_subquery()


def _first_jobs(connection: Connection, groups: Iterable[str]) -> dict[str, int]:
    wanted = list(groups)
    if not wanted:
        return {}
    query = sa.select(jobs.c.group, sa.func.min(jobs.c.key)).where(jobs.c.group.in_(wanted)).group_by(jobs.c.group)
    return {row[0]: row[1] for row in connection.execute(query)}


def _best_keys(connection: Connection) -> list[int]:
    """Return the key of the best training of each dataset, and of each source that is no dataset of the studio."""
    data = jobs.alias("data")
    columns = (jobs.c.key, curves.c.tag, curves.c.minimum, curves.c.maximum)
    trained = (jobs.c.kind == "train", curves.c.tag.in_(primary_tags()))
    of_datasets = (
        sa.select(data.c.id.label("source"), *columns)
        .select_from(jobs.join(curves).join(dependencies).join(data, data.c.id == dependencies.c.needed_id))
        .where(*trained, data.c.kind == "dataset")
    )
    of_sources = (
        sa.select(spec_values.c.text.label("source"), *columns)
        .select_from(jobs.join(curves).join(spec_values, spec_values.c.job_key == jobs.c.key))
        .where(*trained, spec_values.c.name == "data.source")
        .where(jobs.c.key.not_in(sa.select(dependencies.c.job_key)))
    )
    rows: list[Any] = [*connection.execute(of_datasets), *connection.execute(of_sources)]
    best = (_best_job(found) for _, found in _by_first(sorted(rows, key=lambda row: (row[0] or "", row.key))))
    return [key for key in best if isinstance(key, int)]
