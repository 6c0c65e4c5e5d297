"""Conversion between jobs and their database rows, the flat form of their specs included."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from ziggurat.entities import ENDED_STATES, Divergence, Job, NewJob, ResourceRequest, ScalarSummary, Share, WorkerRef
from ziggurat.entities.jobs import DIVERGED, TRAINING_LOSSES, divergence_after, divergence_of_error, outcome_of
from ziggurat.errors import JobError, MissingJobError, NonFiniteError, UnknownNameError, nearest_names
from ziggurat.specs import present_names
from ziggurat.store.database import Folders
from ziggurat.store.dialects import position_in
from ziggurat.store.tables import (
    Json,
    clean_text,
    curves,
    dependencies,
    job_contents,
    job_tags,
    job_texts,
    jobs,
    short_text,
    spec_values,
)

__all__ = [
    "ARITHMETIC",
    "DIVERGENCE",
    "insert_job",
    "key_of",
    "load_jobs",
    "no_such_job",
    "outcome_column",
    "replace_job",
    "set_tags",
    "set_text",
    "update_fields",
]


_IN_CONTENTS: Final = ("depends_on", "needs", "error")
CHANGEABLE: Final = frozenset(
    {column.name for column in jobs.columns} - {"key", "id", "kind", "state", "name", "project", "tags", "position"}
    - {"priority", "events_offset", "folder"}
) | {*_IN_CONTENTS, "facts"}  # fmt: skip
"""Names that ``move`` and ``note`` take; what people change goes through ``change``, places through ``reorder``."""

_NOT_STORED: Final = ("scalars", "divergence", "outcome", "baselines", "next_step")
_FIELDS: Final = (*(part.name for part in fields(Job) if part.name not in _NOT_STORED), "facts")
_COLUMNS: Final = tuple(jobs.c[name] if name in jobs.c else job_contents.c[name] for name in _FIELDS)
_JSON_FIELDS: Final = frozenset(column.name for column in _COLUMNS if isinstance(column.type, Json))
# JSON columns as text: most jobs of a list are cached, and their rows are not decoded again.
_READ: Final = tuple(
    sa.type_coerce(column, sa.Text).label(column.name) if column.name in _JSON_FIELDS else column for column in _COLUMNS
)
_SUMMARY: Final = tuple(
    curves.c[name] for name in ("job_key", "tag", "last", "minimum", "maximum", "count", "last_step")
)
ARITHMETIC: Final = "arithmetic"
"""Name of the arithmetic of the attempts among the facts of a training: number → fields of ``AttemptArithmetic``."""

DIVERGENCE: Final = "divergence"
"""Name of the divergence among the facts of a training."""


def outcome_column() -> ColumnElement[str]:
    """Return the outcome of a job as the ``outcome`` of ``Job`` has it; ``jobs`` is in the query around it."""
    mine = spec_values.c.job_key == jobs.c.key
    is_noted = sa.exists().where(mine, spec_values.c.name == f"{_FACTS}{DIVERGENCE}.tag")
    error = sa.type_coerce(job_contents.c.error, sa.Text)
    parts = (f'"error":"{NonFiniteError.code}"', *(f'"tag":"{tag}"' for tag in TRAINING_LOSSES))
    is_not_finite, *is_loss = (position_in(error, part) > 0 for part in parts)
    is_told = sa.exists().where(job_contents.c.job_key == jobs.c.key, is_not_finite, sa.or_(*is_loss))
    return sa.case(
        (jobs.c.state.not_in(ENDED_STATES), ""),
        (sa.or_(is_noted, is_told), DIVERGED),
        else_=jobs.c.state,
    )


_NAN: Final = float("nan")
_WORKER: Final = [part.name for part in fields(WorkerRef)]
_NEEDS: Final = {part.name for part in fields(ResourceRequest)}
_CHUNK: Final = 500
_JOBS_KEPT: Final = 1000
_SUGGESTED_AMONG: Final = 500
_FACTS: Final = "facts."
_ASKED: Final = (
    "kind", "name", "folder", "project", "owner", "group", "parent", "priority", "framework", "network", "created",
)  # fmt: skip


def no_such_job(connection: Connection, job_id: str) -> MissingJobError:
    """Return the error for an id that no job has; it suggests the newest jobs with an id or a name like it."""
    newest = sa.select(jobs.c.id, jobs.c.name).order_by(jobs.c.created.desc()).limit(_SUGGESTED_AMONG)
    names = {row.id: row.name for row in connection.execute(newest)}
    near = nearest_names(job_id, [*names, *names.values()])
    meant = [each for each, name in names.items() if each in near or name in near][:3]
    shown = " or ".join(f"`{each}` ({names[each]})" for each in meant)
    return MissingJobError(
        f"There is no job `{job_id}`.",
        advice=f"Did you mean {shown}?" if meant else "Look at the list of jobs; it may be deleted.",
        details={"job": job_id, "nearest": meant},
    )


def key_of(connection: Connection, job_id: str) -> int:
    """Return the number by which other tables point at the job.

    Raises:
        JobError: where there is none.
    """
    key = connection.execute(sa.select(jobs.c.key).where(jobs.c.id == job_id)).scalar()
    if key is None:
        raise no_such_job(connection, job_id)
    return key


def insert_job(connection: Connection, folders: Folders, new: NewJob, state: str, facts: Mapping[str, Any]) -> int:
    """Put a job at the end of the queue and return its key.

    Raises:
        JobError: where another job has the id.
    """
    if connection.execute(sa.select(jobs.c.key).where(jobs.c.id == new.id)).scalar() is not None:
        raise JobError(f"There is a job with the id {new.id} already.", advice="Choose another id.")
    position = (connection.execute(sa.select(sa.func.max(jobs.c.position))).scalar() or 0.0) + 1.0
    row = {**_columns(new, folders), "id": new.id, "state": state, "position": position, "devices": [], "tags": []}
    key = connection.execute(sa.insert(jobs).values(row).returning(jobs.c.key)).scalar_one()
    connection.execute(sa.insert(job_contents).values(job_key=key, facts={}, **_contents(new)))
    connection.execute(sa.insert(job_texts).values(job_key=key, text=""))
    _write_lists(connection, key, new)
    _set_facts(connection, key, facts)
    return key


def replace_job(connection: Connection, folders: Folders, key: int, new: NewJob) -> None:
    """Write anew what was asked and what people gave a job; how it is, its needs and its place in the queue stay."""
    connection.execute(sa.update(jobs).where(jobs.c.key == key).values(_columns(new, folders)))
    contents = {name: value for name, value in _contents(new).items() if name != "needs"}
    connection.execute(sa.update(job_contents).where(job_contents.c.job_key == key).values(contents))
    own = ~spec_values.c.name.startswith(_FACTS, autoescape=True)
    connection.execute(sa.delete(spec_values).where(spec_values.c.job_key == key, own))
    _write_lists(connection, key, new)


def update_fields(connection: Connection, key: int, values: Mapping[str, Any]) -> None:
    """Write fields of a job wherever they stand.

    Raises:
        UnknownNameError: where a name is not in ``CHANGEABLE``.
    """
    unknown = sorted(set(values) - CHANGEABLE)
    if unknown:
        raise UnknownNameError("changeable field of a job", unknown[0], CHANGEABLE)
    plain = {name: _stored(value) for name, value in values.items()}
    row = {name: value for name, value in plain.items() if name not in (*_IN_CONTENTS, "facts")}
    contents = {name: value for name, value in plain.items() if name in _IN_CONTENTS}
    if row:
        connection.execute(sa.update(jobs).where(jobs.c.key == key).values(row))
    if contents:
        connection.execute(sa.update(job_contents).where(job_contents.c.job_key == key).values(contents))
    if "depends_on" in values:
        _set_dependencies(connection, key, values["depends_on"])
    if "facts" in values:
        _set_facts(connection, key, values["facts"])
    if "network" in values:
        set_text(connection, key)


def set_tags(connection: Connection, key: int, tags: Iterable[str]) -> None:
    """Replace the tags of a job; their order is kept, a tag counts once."""
    words = list(dict.fromkeys(short_text(tag, "A tag") for tag in tags))
    connection.execute(sa.delete(job_tags).where(job_tags.c.job_key == key))
    if words:
        connection.execute(sa.insert(job_tags), [{"job_key": key, "tag": tag} for tag in words])
    connection.execute(sa.update(jobs).where(jobs.c.key == key).values(tags=words))


def set_text(connection: Connection, key: int) -> None:
    """Write anew what a search for words looks through."""
    source = sa.select(jobs.c.name, jobs.c.id, jobs.c.network, jobs.c.tags, job_contents.c.notes)
    row = connection.execute(source.join(job_contents).where(jobs.c.key == key)).one()
    text = "\n".join((row.name, row.id, row.network, *row.tags, row.notes)).casefold()
    connection.execute(sa.update(job_texts).where(job_texts.c.job_key == key).values(text=text))


def load_jobs(connection: Connection, folders: Folders, keys: Sequence[int]) -> list[Job]:
    """Return whole jobs in the order of ``keys``."""
    found: dict[int, Job] = {}
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        summaries = _summaries(connection, chunk)
        query = sa.select(jobs.c.key, *_READ).join(job_contents).where(jobs.c.key.in_(chunk))
        for key, *values in connection.execute(query):
            # Decoding a row costs ten times as much as reading it: a job is cached until its row changes.
            stored = (*values, *summaries.get(key, ()))
            kept = folders.loaded.get(key)
            if kept is None or kept[0] != stored:
                kept = folders.loaded[key] = (stored, _job(folders, values, summaries.get(key, ())))
            found[key] = kept[1]
    for key in list(folders.loaded)[: max(0, len(folders.loaded) - _JOBS_KEPT)]:
        folders.loaded.pop(key, None)
    return [found[key] for key in keys if key in found]


def _job(folders: Folders, values: Sequence[Any], summaries: Sequence[Sequence[Any]]) -> Job:
    row: dict[str, Any] = {
        name: json.loads(value) if name in _JSON_FIELDS and value is not None else value
        for name, value in zip(_FIELDS, values, strict=True)
    }
    row |= {"folder": folders.present(row["folder"]), "spec": present_names(folders.spec(row["spec"]))}
    scalars = {each.tag: each for each in map(_summary, summaries)}
    needs = {name: value for name, value in row.pop("needs").items() if name in _NEEDS}
    needs |= {name: tuple(needs.get(name, ())) for name in ("device_indices", "datasets")}
    lists = {name: tuple(row.pop(name)) for name in ("depends_on", "devices", "tags")}
    held = row.pop("facts").get(DIVERGENCE)
    divergence = _divergence_of_error(row) if held is None else Divergence(**held)
    outcome = outcome_of(row["state"], divergence)
    return Job(
        scalars=scalars,
        needs=ResourceRequest(**needs),
        worker=_worker(row.pop("worker")),
        placement=tuple(_share(each) for each in row.pop("placement") or ()),
        divergence=divergence,
        outcome=outcome,
        **lists,
        **row,
    )


def _worker(stored: Mapping[str, Any] | None) -> WorkerRef | None:
    return None if stored is None else WorkerRef(**{name: stored[name] for name in _WORKER if name in stored})


def _share(stored: Mapping[str, Any]) -> Share:
    return Share(stored["node"], tuple(stored["devices"]), tuple(stored["ranks"]))


def _divergence_of_error(row: Mapping[str, Any]) -> Divergence | None:
    """Return the divergence that a stored error tells of: workers of earlier releases wrote no event of it."""
    told = divergence_of_error(row["error"] or {}, row["ended"] or 0.0, max(1, row["epoch"]))
    return None if told is None else divergence_after(told)


def _summaries(connection: Connection, keys: Sequence[int]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    query = sa.select(*_SUMMARY).where(curves.c.job_key.in_(keys)).order_by(curves.c.job_key, curves.c.tag)
    for key, *summary in connection.execute(query):
        found.setdefault(key, []).append(tuple(summary))
    return found


def _summary(values: Sequence[Any]) -> ScalarSummary:
    tag, last, minimum, maximum, count, last_step = values
    return ScalarSummary(
        tag=tag,
        last=_number(last),
        minimum=_number(minimum),
        maximum=_number(maximum),
        count=count,
        last_step=last_step,
    )


def _number(value: float | None) -> float:
    return _NAN if value is None else value


def _stored(value: Any) -> Any:
    if isinstance(value, ResourceRequest | WorkerRef):
        return asdict(value)
    if isinstance(value, tuple):
        return [asdict(each) if isinstance(each, Share) else each for each in value]
    return value


def _set_dependencies(connection: Connection, key: int, needed: Iterable[str]) -> None:
    connection.execute(sa.delete(dependencies).where(dependencies.c.job_key == key))
    rows = [{"job_key": key, "needed_id": clean_text(job_id)} for job_id in dict.fromkeys(needed)]
    if rows:
        connection.execute(sa.insert(dependencies), rows)


def _columns(new: NewJob, folders: Folders) -> dict[str, Any]:
    return {name: getattr(new, name) for name in _ASKED} | {"folder": folders.stored(new.folder)}


def _contents(new: NewJob) -> dict[str, Any]:
    return {
        "spec": dict(new.spec),
        "needs": asdict(new.needs),
        "depends_on": list(new.depends_on),
        "notes": new.notes,
    }


def _write_lists(connection: Connection, key: int, new: NewJob) -> None:
    _set_dependencies(connection, key, new.depends_on)
    # A spec may not pass for what is known of a finished dataset.
    spec = {name: part for name, part in new.spec.items() if not f"{name}.".startswith(_FACTS)}
    _add_values(connection, key, spec)
    set_tags(connection, key, new.tags)
    set_text(connection, key)


def _set_facts(connection: Connection, key: int, facts: Mapping[str, Any]) -> None:
    connection.execute(sa.update(job_contents).where(job_contents.c.job_key == key).values(facts=dict(facts)))
    old = spec_values.c.name.startswith(_FACTS, autoescape=True)
    connection.execute(sa.delete(spec_values).where(spec_values.c.job_key == key, old))
    _add_values(connection, key, {"facts": facts})


def _add_values(connection: Connection, key: int, spec: Mapping[str, Any]) -> None:
    rows = [
        {"job_key": key, "name": name, "number": number, "text": text}
        for name, (number, text) in flatten_spec(spec).items()
    ]
    if rows:
        connection.execute(sa.insert(spec_values), rows)


SpecValue = tuple[float | None, str | None]
"""A number or a text; the other is None. A bool is the number 0 or 1."""

_MOST_NAMES = 500
_LONGEST_NAME = 200
_LONGEST_TEXT = 500


def flatten_spec(spec: Mapping[str, Any]) -> dict[str, SpecValue]:
    """Return ``optimizer.momentum`` → 0.9 for every value of a spec; a list is its JSON text, None is left out.

    A spec comes from outside: at most 500 names are kept, and long texts are cut.
    """
    values: dict[str, SpecValue] = {}
    for name, value in _leaves(spec, "", 8):
        if len(values) >= _MOST_NAMES:
            break
        values[clean_text(name)[:_LONGEST_NAME]] = value
    return values


def _leaves(spec: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, SpecValue]]:
    for name, part in spec.items():
        if isinstance(part, Mapping) and depth:
            yield from _leaves(part, f"{prefix}{name}.", depth - 1)
        elif part is not None:
            yield f"{prefix}{name}", _value(part)


def _value(part: Any) -> SpecValue:
    if isinstance(part, int | float):
        try:
            number = float(part)
        except OverflowError:
            return None, str(part)[:_LONGEST_TEXT]
        return (None, "NaN") if math.isnan(number) else (number, None)
    if isinstance(part, str):
        return None, part[:_LONGEST_TEXT]
    return None, json.dumps(part, separators=(",", ":"), default=str)[:_LONGEST_TEXT]
