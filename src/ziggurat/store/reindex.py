"""Rebuild of the store from the job folders alone.

The folders are the source of truth; the store is only an index of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ziggurat.entities import NewJob
from ziggurat.entities.queue_order import read_queue_order
from ziggurat.errors import UnknownNameError, UsageError, ZigguratError
from ziggurat.events import read_events
from ziggurat.layout import JobFolder, job_folders
from ziggurat.store.database import Database
from ziggurat.store.events import EventRepository
from ziggurat.store.job_rows import insert_job, key_of, replace_job, update_fields
from ziggurat.store.projects import ensure_project
from ziggurat.store.tables import jobs

__all__ = ["JobOnDisk", "ReindexReport", "index_job", "rebuild"]


@dataclass(frozen=True, kw_only=True)
class JobOnDisk:
    """What the folder of a job says of it, besides its events.

    Args:
        job: what was asked, and what people gave it.
        state: as its files tell.
        fields: further fields of ``Job`` that its files tell, such as ``reason``, ``pid`` or ``facts``.
        placed: where its newest worker was started, as fields of ``Job``; what the store has counts more.
    """

    job: NewJob
    state: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    placed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReindexReport:
    """What a rebuild found.

    Args:
        added: ids of jobs that the store did not have.
        renewed: ids of jobs that it had.
        missing: ids of jobs whose folder is gone; they stay in the store.
        damaged: folder → why it could not be read.
        events: events that were read, all jobs together.
    """

    added: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    damaged: Mapping[str, str] = field(default_factory=dict)
    events: int = 0


def rebuild(
    database: Database, events: EventRepository, workspace_folder: Path, read_job: Callable[[Path], JobOnDisk]
) -> ReindexReport:
    """Bring the store in line with the folders; see ``Store.reindex``."""
    found: list[JobOnDisk] = []
    damaged: dict[str, str] = {}
    for folder in job_folders(workspace_folder):
        try:
            found.append(read_job(folder))
        except ZigguratError as error:
            damaged[str(folder)] = str(error)
    added: list[str] = []
    renewed: list[str] = []
    count = 0
    for on_disk in _in_order(found, read_queue_order(workspace_folder)):
        try:
            is_new, read = index_job(database, events, on_disk)
        except (UsageError, UnknownNameError) as error:  # such as a tag of a thousand characters
            damaged[on_disk.job.folder] = str(error)
            continue
        (added if is_new else renewed).append(on_disk.job.id)
        count += read
    there = {one.job.id for one in found} | {Path(folder).name for folder in damaged}
    missing = _missing(database, there)
    return ReindexReport(added=tuple(added), renewed=tuple(renewed), missing=missing, damaged=damaged, events=count)


def _in_order(found: Iterable[JobOnDisk], queue: Sequence[str]) -> list[JobOnDisk]:
    """Return jobs by their creation, where those of the queue have changed places as a user has asked."""
    jobs_found = sorted(found, key=lambda one: (one.job.created, one.job.id))
    places = {job_id: place for place, job_id in enumerate(queue)}
    moved = [number for number, one in enumerate(jobs_found) if one.state == "queued" and one.job.id in places]
    ordered = sorted((jobs_found[number] for number in moved), key=lambda one: places[one.job.id])
    for number, one in zip(moved, ordered, strict=True):
        jobs_found[number] = one
    return jobs_found


def index_job(database: Database, events: EventRepository, on_disk: JobOnDisk) -> tuple[bool, int]:
    """Bring the store in line with one folder; return whether the job is new, and how many events were read.

    Raises:
        UsageError: where a text is too long for the store.
        UnknownNameError: where its files name a field that there is not.
    """
    with database.write() as connection:
        ensure_project(connection, on_disk.job.project, on_disk.job.created)
        key = connection.execute(sa.select(jobs.c.key).where(jobs.c.id == on_disk.job.id)).scalar()
        if key is None:
            insert_job(connection, database.folders, on_disk.job, on_disk.state, {})
        else:
            replace_job(connection, database.folders, key, on_disk.job)
    events.reset(on_disk.job.id)
    count = _read_events(events, on_disk.job.id, JobFolder(Path(on_disk.job.folder)).events)
    with database.write() as connection:
        place = key_of(connection, on_disk.job.id)
        connection.execute(sa.update(jobs).where(jobs.c.key == place).values(state=on_disk.state))
        update_fields(connection, place, {**(on_disk.placed if key is None else {}), **on_disk.fields})
    return key is None, count


def _read_events(events: EventRepository, job_id: str, path: Path) -> int:
    offset, count = 0, 0
    while True:
        batch, after = read_events(path, offset)
        # A refusal says that a reader of the running studio goes on here: it does the rest.
        if after == offset or not events.take(job_id, offset, after, batch):
            return count
        offset, count = after, count + len(batch)


def _missing(database: Database, there: set[str]) -> tuple[str, ...]:
    with database.read() as connection:
        return tuple(job_id for job_id in connection.execute(sa.select(jobs.c.id)).scalars() if job_id not in there)
