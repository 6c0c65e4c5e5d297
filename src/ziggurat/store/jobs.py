"""Repository of jobs: their configuration, their state, their order in the queue, and queries by filter."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Select

from ziggurat.entities import JOB_STATES, RUN_KINDS, Job, JobChange, JobFilter, JobPage, JobTotals, NewJob, SweepSummary
from ziggurat.entities.best_checkpoint import primary_metric, primary_tags
from ziggurat.errors import UnknownNameError
from ziggurat.specs import known_paths
from ziggurat.store.database import Database
from ziggurat.store.dialects import bytewise, position_in
from ziggurat.store.job_lists import listed_jobs, pinned_keys, sweep_summaries
from ziggurat.store.job_rows import (
    insert_job,
    key_of,
    load_jobs,
    no_such_job,
    outcome_column,
    set_tags,
    set_text,
    update_fields,
)
from ziggurat.store.projects import ensure_project
from ziggurat.store.tables import clean_text, curves, dependencies, job_contents, job_tags, job_texts, jobs, spec_values

__all__ = [
    "DatasetRepository",
    "JobRepository",
]


_MOST: Final = 1 << 31
_IN_QUEUE: Final = (jobs.c.priority.desc(), jobs.c.position, jobs.c.key)


class JobRepository:
    """The jobs; every method is one transaction and may be called from any thread.

    Args:
        database: where they are.
        clock: returns seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def add(self, new: NewJob) -> Job:
        """Put a job at the end of the queue; its project is made where there is none yet.

        Raises:
            JobError: where another job has the id.
        """
        with self._database.write() as connection:
            ensure_project(connection, new.project, self._clock())
            key = insert_job(connection, self._database.folders, new, "queued", {})
            return load_jobs(connection, self._database.folders, [key])[0]

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            JobError: where there is none.
        """
        job = self.find(job_id)
        if job is None:
            with self._database.read() as connection:
                raise no_such_job(connection, job_id)
        return job

    def find(self, job_id: str) -> Job | None:
        """Return a job, or None where there is none."""
        found = self._database.until_changed(("job", job_id), lambda: self._where(jobs.c.id == job_id))
        return found[0] if found else None

    def place(self, job_id: str) -> tuple[str, str, str]:
        """Return kind, state and folder of a job; this is cheaper than ``get``.

        Raises:
            JobError: where there is none.
        """
        return self._database.until_changed(("place", job_id), lambda: self._place(job_id))

    def _place(self, job_id: str) -> tuple[str, str, str]:
        query = sa.select(jobs.c.kind, jobs.c.state, jobs.c.folder).where(jobs.c.id == job_id)
        with self._database.read() as connection:
            found = connection.execute(query).one_or_none()
            if found is None:
                raise no_such_job(connection, job_id)
        return found.kind, found.state, self._database.folders.present(found.folder)

    def some(self, job_ids: Iterable[str]) -> list[Job]:
        """Return jobs as they wait: by priority, then by position; those that are not there are left out."""
        wanted = tuple(sorted(job_ids))
        return list(self._database.until_changed(("some", wanted), lambda: self._where(jobs.c.id.in_(wanted))))

    def page(self, wanted: JobFilter) -> JobPage:
        """Return the jobs of one page, and how many the filter leaves in all.

        A condition or an order by a name takes the job's own field of that name, else the spec's (``learning_rate``,
        ``optimizer.momentum``), else what is known of a finished dataset (``facts.samples``), else the newest value
        of the curve. No condition holds for a job without such a value, ``!=`` neither.

        Raises:
            UnknownNameError: where a condition compares in a way that there is not.
        """
        if wanted.sort == "elapsed":  # the only order that changes by itself
            return self._page(wanted)
        return self._database.until_changed(("page", wanted), lambda: self._page(wanted))

    def _page(self, wanted: JobFilter) -> JobPage:
        now = self._clock()
        offset, limit = (min(max(0, number), _MOST) for number in (wanted.offset, wanted.limit))
        with self._database.read() as connection:
            chosen = chosen_jobs(connection, wanted, now)
            listed = listed_jobs(connection, chosen, wanted.listing)
            first = pinned_keys(connection, chosen, listed, wanted.listing)
            ordered = in_order(connection, listed, wanted, now)
            if wanted.conditions or wanted.text or wanted.words:  # to choose costs more than to sort: it is done once
                all_keys = list(dict.fromkeys([*first, *connection.execute(ordered).scalars()]))
                total, keys = len(all_keys), all_keys[offset : offset + limit]
            else:
                total = connection.execute(sa.select(sa.func.count()).select_from(listed.subquery())).scalar_one()
                keys = first[offset : offset + limit]
                rest = ordered.where(jobs.c.key.not_in(first)).offset(max(0, offset - len(first)))
                keys += connection.execute(rest.limit(limit - len(keys))).scalars().all()
            return JobPage(total=total, jobs=tuple(load_jobs(connection, self._database.folders, keys)))

    def sweeps(self, groups: Iterable[str]) -> dict[str, SweepSummary]:
        """Return id of a sweep → its summary, by a few queries for all of them."""
        wanted = tuple(sorted(groups))
        return dict(self._database.until_changed(("sweeps", wanted), lambda: self._sweeps(wanted)))

    def _sweeps(self, groups: Sequence[str]) -> dict[str, SweepSummary]:
        with self._database.read() as connection:
            return sweep_summaries(connection, groups)

    def in_states(self, states: Iterable[str], limit: int | None = None, offset: int = 0) -> list[Job]:
        """Return the jobs in any of these states, so many at most, as they wait: by priority, then by position."""
        wanted = tuple(states)
        found = self._database.until_changed(
            ("in_states", wanted, limit, offset),
            lambda: self._where(jobs.c.state.in_(wanted), limit=limit, offset=offset),
        )
        return list(found)

    def queue_order(self) -> list[tuple[str, int]]:
        """Return id and priority of each job in the queue, the next one first."""
        return list(self._database.until_changed("queue_order", self._queue_order))

    def _queue_order(self) -> list[tuple[str, int]]:
        query = sa.select(jobs.c.id, jobs.c.priority).where(jobs.c.state == "queued").order_by(*_IN_QUEUE)
        with self._database.read() as connection:
            return [(row.id, row.priority) for row in connection.execute(query)]

    def group(self, group_id: str) -> list[Job]:
        """Return the jobs of a sweep, in the order in which they were made."""
        return self._where(jobs.c.group == group_id, order=(jobs.c.created, bytewise(jobs.c.id)))

    def dependents(self, job_id: str) -> list[Job]:
        """Return the jobs that name this one among those that must be done first; it may be gone."""
        waiting = sa.select(dependencies.c.job_key).where(dependencies.c.needed_id == job_id)
        question = ("dependents", job_id)
        return list(self._database.until_changed(question, lambda: self._where(jobs.c.key.in_(waiting))))

    def counts(self) -> dict[str, int]:
        """Return how many jobs are in each state; all states are there."""
        return dict(self._database.until_changed("counts", self._counts))

    def _counts(self) -> dict[str, int]:
        query = sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state)
        with self._database.read() as connection:
            return dict.fromkeys(JOB_STATES, 0) | {row[0]: row[1] for row in connection.execute(query)}

    def totals(self, failed_after: float) -> JobTotals:
        """Return how many jobs there are of each kind and in each state, and how many sweeps.

        Args:
            failed_after: seconds since 1970; ``failed`` counts the failed trainings that ended later.
        """
        return self._database.until_changed(("totals", failed_after), lambda: self._totals(failed_after))

    def _totals(self, failed_after: float) -> JobTotals:
        query = sa.select(jobs.c.kind, jobs.c.state, sa.func.count()).group_by(jobs.c.state, jobs.c.kind)
        is_run = (jobs.c.state == "failed") & jobs.c.kind.in_(list(RUN_KINDS))
        recent = sa.select(sa.func.count()).where(is_run, jobs.c.ended > failed_after)
        sweeps = sa.select(sa.func.count(jobs.c.group.distinct())).where(jobs.c.group != "", jobs.c.kind == "train")
        states: dict[str, int] = dict.fromkeys(JOB_STATES, 0)
        kinds = Counter[str]()
        with self._database.read() as connection:
            for kind, state, count in connection.execute(query):
                kinds[kind] += count
                states[state] += count
            failed, swept = (connection.execute(each).scalar_one() for each in (recent, sweeps))
            return JobTotals(states=states, kinds=kinds, sweeps=swept, failed=failed)

    def dependent_counts(self, job_ids: Iterable[str]) -> dict[str, int]:
        """Return how many jobs need each of these; those that are not needed are left out."""
        wanted = tuple(sorted(job_ids))
        question = ("dependent_counts", wanted)
        return dict(self._database.until_changed(question, lambda: self._dependent_counts(wanted)))

    def _dependent_counts(self, job_ids: Sequence[str]) -> dict[str, int]:
        needed = dependencies.c.needed_id
        query = sa.select(needed, sa.func.count()).where(needed.in_(job_ids)).group_by(needed)
        with self._database.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def ids(self) -> set[str]:
        """Return the ids of all jobs."""
        with self._database.read() as connection:
            return set(connection.execute(sa.select(jobs.c.id)).scalars())

    def tags(self) -> list[str]:
        """Return all tags that jobs have, in the order of their letters."""
        with self._database.read() as connection:
            return sorted(connection.execute(sa.select(job_tags.c.tag).distinct()).scalars())

    def change(self, job_id: str, change: JobChange, now: float) -> Job:
        """Change what a person may change, and return the job.

        Args:
            job_id: which.
            change: what; None leaves a field.
            now: seconds since 1970, for a project that is new.

        Raises:
            JobError: where there is none.
        """
        row = {name: getattr(change, name) for name in ("name", "project", "priority")}
        row = {name: value for name, value in row.items() if value is not None}
        with self._database.write() as connection:
            key = key_of(connection, job_id)
            ensure_project(connection, row.get("project", ""), now)
            if row:
                connection.execute(sa.update(jobs).where(jobs.c.key == key).values(row))
            if change.notes is not None:
                notes = sa.update(job_contents).where(job_contents.c.job_key == key)
                connection.execute(notes.values(notes=change.notes))
            if change.tags is not None:
                set_tags(connection, key, change.tags)
            set_text(connection, key)
            return load_jobs(connection, self._database.folders, [key])[0]

    def move(self, job_id: str, from_states: Collection[str], to_state: str, **fields: Any) -> bool:
        """Change the state if it is one of ``from_states``, together with further fields of ``Job``.

        Returns:
            Whether it was; where not, nothing changed.

        Raises:
            JobError: where there is no such job.
            UnknownNameError: where ``to_state`` is no state, or a field is none that the program may set.
        """
        if to_state not in JOB_STATES:
            raise UnknownNameError("state of a job", to_state, JOB_STATES)
        with self._database.write() as connection:
            key = key_of(connection, job_id)
            moving = sa.update(jobs).where(jobs.c.key == key, jobs.c.state.in_(list(from_states)))
            if connection.execute(moving.values(state=to_state)).rowcount == 0:
                return False
            update_fields(connection, key, fields)
            return True

    def note(self, job_id: str, **fields: Any) -> None:
        """Write fields of ``Job`` such as ``health`` or ``reason``, or ``facts``, and leave the state.

        Raises:
            JobError: where there is no such job.
            UnknownNameError: where a field is none that the program may set.
        """
        with self._database.write() as connection:
            update_fields(connection, key_of(connection, job_id), fields)

    def reorder(self, job_id: str, before: str | None = None) -> None:
        """Put a job right before another one in the queue, or last where ``before`` is None.

        Raises:
            JobError: where one of them is not there.
        """
        with self._database.write() as connection:
            key = key_of(connection, job_id)
            if before == job_id:
                return
            order = list(connection.execute(sa.select(jobs.c.key).order_by(jobs.c.position, jobs.c.key)).scalars())
            order.remove(key)
            place = len(order) if before is None else order.index(key_of(connection, before))
            _put(connection, key, order, place)

    def delete(self, job_id: str) -> None:
        """Remove a job with all that is known of it; one that is not there is passed over. Its folder stays."""
        with self._database.write() as connection:
            connection.execute(sa.delete(jobs).where(jobs.c.id == job_id))

    def _where(
        self, *conditions: Any, order: Iterable[Any] = _IN_QUEUE, limit: int | None = None, offset: int = 0
    ) -> list[Job]:
        query = sa.select(jobs.c.key).where(*conditions).order_by(*order).limit(limit).offset(offset or None)
        with self._database.read() as connection:
            return load_jobs(connection, self._database.folders, connection.execute(query).scalars().all())


def _put(connection: Connection, key: int, order: list[int], place: int) -> None:
    neighbours = order[max(0, place - 1) : place + 1]
    query = sa.select(jobs.c.key, jobs.c.position).where(jobs.c.key.in_(neighbours))
    positions = {row.key: row.position for row in connection.execute(query)}
    low = positions[order[place - 1]] if place > 0 else None
    high = positions[order[place]] if place < len(order) else None
    if low is None or high is None:
        position = (low + 1.0) if low is not None else (high - 1.0) if high is not None else 1.0
    else:
        position = (low + high) / 2
    if position in (low, high):  # no number lies between them any more
        all_keys = [*order[:place], key, *order[place:]]
        rows = [{"row": other, "place": float(index)} for index, other in enumerate(all_keys)]
        placed = sa.update(jobs).where(jobs.c.key == sa.bindparam("row")).values(position=sa.bindparam("place"))
        connection.execute(placed, rows)
    else:
        connection.execute(sa.update(jobs).where(jobs.c.key == key).values(position=position))


class DatasetRepository:
    """The datasets: jobs of kind ``dataset`` and their facts. ``JobRepository.note(id, facts=…)`` writes facts too.

    Args:
        database: where they are.
        clock: returns seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def add_finished(self, new: NewJob, facts: Mapping[str, Any]) -> Job:
        """Put in a dataset that no worker of the studio made, such as a version; its state is ``done``.

        Args:
            new: kind ``dataset``; ``created`` is also when it was finished.
            facts: what it holds, as JSON values.

        Raises:
            JobError: where another job has the id.
        """
        with self._database.write() as connection:
            ensure_project(connection, new.project, self._clock())
            key = insert_job(connection, self._database.folders, new, "done", facts)
            update_fields(connection, key, {"ended": new.created})
            return load_jobs(connection, self._database.folders, [key])[0]

    def facts(self, job_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return what is known of each dataset; jobs that are not there are left out, unfinished ones are empty."""
        query = sa.select(jobs.c.id, job_contents.c.facts).join(job_contents).where(jobs.c.id.in_(list(job_ids)))
        with self._database.read() as connection:
            return {row.id: row.facts for row in connection.execute(query)}


_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
    "~": lambda column, text: position_in(sa.func.lower(column), text.lower()) > 0,
}
_NUMBERS: Final = ("priority", "created", "started", "ended", "attempt", "epoch", "global_step", "steps_per_s")
_TEXTS: Final = (
    *("kind", "name", "id", "project", "owner", "framework", "network", "group", "parent"),
    *("reason", "host"),
)
_GROUPS: Final = ("project", "group")
_NEVER_MISSING: Final = frozenset(
    {"state", "outcome", "priority", "created", "attempt", "epoch", "global_step", *_TEXTS}
)


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
    words = [clean_text(word).casefold() for word in (wanted.text, *wanted.words) if word]
    if words:
        query = query.join(job_texts).where(*(position_in(job_texts.c.text, word) > 0 for word in words))
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
    own = best_column(connection) if name == "best" else _own_value(name, now)
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
        mine = sa.and_(spec_values.c.job_key == jobs.c.key, spec_values.c.name.in_(known_paths(name)))
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
    named = spec_values.c.name.in_(known_paths(name))
    parts = ((named,), (named, spec_values.c.text.is_not(None)), (curves.c.tag == name,))
    found = connection.execute(sa.select(*(sa.exists().where(*conditions) for conditions in parts))).one()
    return bool(found[0]), bool(found[1]), bool(found[2])


def _own_value(name: str, now: float) -> ColumnElement[Any] | None:
    if name == "used_by":
        return sa.select(sa.func.count()).where(dependencies.c.needed_id == jobs.c.id).scalar_subquery()
    if name == "elapsed":
        return sa.func.coalesce(jobs.c.ended, now) - jobs.c.started
    if name == "state":
        order = {state: place for place, state in enumerate(JOB_STATES)}
        return sa.case(order, value=jobs.c.state, else_=len(order))
    if name == "outcome":
        return outcome_column()
    if name in _NUMBERS:
        return jobs.c[name]
    if name == "name":
        return sa.func.lower(bytewise(jobs.c.name))  # of ASCII letters only, in every database
    return bytewise(jobs.c[name]) if name in _TEXTS else None


# A name may stand for a field of the job, of its spec or for a curve, in this order; users do not say which.
def _condition(connection: Connection, name: str, comparison: str, value: Any, now: float) -> ColumnElement[bool]:
    compare = _COMPARISONS.get(comparison)
    if compare is None:
        raise UnknownNameError("comparison", comparison, _COMPARISONS)
    if isinstance(value, tuple):
        parts = [_condition(connection, name, comparison, each, now) for each in value]
        return sa.and_(*parts) if comparison == "!=" else sa.or_(*parts)
    wanted = _comparable(value)
    if wanted is None or (comparison == "~" and not isinstance(wanted, str)):
        return sa.false()
    if name in _RELATED:
        return _RELATED[name](comparison, wanted) if isinstance(wanted, str) else sa.false()
    if name in ("state", "outcome") or name in _TEXTS:
        column = outcome_column() if name == "outcome" else bytewise(jobs.c[name])
        return compare(column, wanted) if isinstance(wanted, str) else sa.false()
    own = best_column(connection) if name == "best" else _own_value(name, now)
    if own is not None:
        return compare(own, wanted) if isinstance(wanted, float) else sa.false()
    in_specs, _, is_curve = _meanings(connection, name)
    named = spec_values.c.name.in_(known_paths(name))
    stored = bytewise(spec_values.c.text) if isinstance(wanted, str) else spec_values.c.number
    in_spec = jobs.c.key.in_(sa.select(spec_values.c.job_key).where(named, compare(stored, wanted)))
    if isinstance(wanted, str) or not is_curve:
        return in_spec
    on_curve = jobs.c.key.in_(sa.select(curves.c.job_key).where(curves.c.tag == name, compare(curves.c.last, wanted)))
    if not in_specs:
        return on_curve
    return in_spec | (on_curve & jobs.c.key.not_in(sa.select(spec_values.c.job_key).where(named)))


def _on_dataset(comparison: str, wanted: str) -> ColumnElement[bool]:
    """Return whether a job was made from a dataset of a name; one without a job has the last name of its path."""
    compare = _COMPARISONS["=" if comparison == "!=" else comparison]
    source = spec_values.c.text
    is_path = sa.or_(compare(bytewise(source), wanted), source.endswith(f"/{wanted}", autoescape=True))
    by_path = sa.select(spec_values.c.job_key).where(spec_values.c.name.in_(known_paths("data.source")), is_path)
    found = _needs("dataset", compare, wanted) | jobs.c.key.in_(by_path)
    return ~found if comparison == "!=" else found


def _on_model(comparison: str, wanted: str) -> ColumnElement[bool]:
    """Return whether a job uses a model of a name, as evaluations do, or trains a network of that name."""
    compare = _COMPARISONS["=" if comparison == "!=" else comparison]
    found = _needs("train", compare, wanted) | compare(bytewise(jobs.c.network), wanted)
    return ~found if comparison == "!=" else found


def _needs(kind: str, compare: Callable[[Any, Any], Any], wanted: str) -> ColumnElement[bool]:
    """Return whether a job needs another one of a kind that has a name or an id."""
    needed = jobs.alias()
    named = sa.select(dependencies.c.job_key).join(needed, needed.c.id == dependencies.c.needed_id)
    is_it = compare(bytewise(needed.c.name), wanted) | compare(bytewise(needed.c.id), wanted)
    return jobs.c.key.in_(named.where(needed.c.kind == kind, is_it))


def _on_parent(comparison: str, wanted: str) -> ColumnElement[bool]:
    """Return whether a job is a clone of one that has a name or an id."""
    compare = _COMPARISONS["=" if comparison == "!=" else comparison]
    parents = jobs.alias()
    named = sa.select(parents.c.id).where(compare(bytewise(parents.c.name), wanted))
    found = compare(bytewise(jobs.c.parent), wanted) | jobs.c.parent.in_(named)
    return ~found if comparison == "!=" else found


def _on_tags(comparison: str, wanted: str) -> ColumnElement[bool]:
    """Return whether any tag of a job fits; of ``!=``, whether none is equal."""
    compare = _COMPARISONS["=" if comparison == "!=" else comparison]
    found = jobs.c.key.in_(sa.select(job_tags.c.job_key).where(compare(bytewise(job_tags.c.tag), wanted)))
    return ~found if comparison == "!=" else found


def _on_notes(comparison: str, wanted: str) -> ColumnElement[bool]:
    compare = _COMPARISONS[comparison]
    notes = sa.select(job_contents.c.job_key).where(compare(bytewise(job_contents.c.notes), wanted))
    return jobs.c.key.in_(notes)


_RELATED: Final[dict[str, Callable[[str, str], ColumnElement[bool]]]] = {
    "dataset": _on_dataset,
    "model": _on_model,
    "parent": _on_parent,
    "tags": _on_tags,
    "notes": _on_notes,
}
"""Name → condition on rows of other tables."""


def best_column(connection: Connection) -> ColumnElement[Any]:
    """Return the best value of the metric that each job is judged by; NULL without one.

    Args:
        connection: to look up which of these metrics any job has.
    """
    known = connection.execute(sa.select(curves.c.tag).where(curves.c.tag.in_(primary_tags())).distinct()).scalars()
    tags, values = set(known), list[ColumnElement[Any]]()
    while (metric := primary_metric(tags)) is not None:
        tag, mode = metric
        extreme = curves.c.minimum if mode == "min" else curves.c.maximum
        values.append(sa.select(extreme).where(curves.c.job_key == jobs.c.key, curves.c.tag == tag).scalar_subquery())
        tags.remove(tag)
    return sa.func.coalesce(*values, sa.null()) if values else sa.null()


def _comparable(value: Any) -> float | str | None:
    if isinstance(value, str):
        return clean_text(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number
