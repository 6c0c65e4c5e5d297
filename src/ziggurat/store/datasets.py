"""Facts about finished datasets for lists: kind of data, counts and classes, next to the job that created each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from ziggurat.entities import Job, NewJob
from ziggurat.store.database import Database
from ziggurat.store.job_rows import insert_job, load_jobs, update_fields
from ziggurat.store.projects import ensure_project
from ziggurat.store.tables import job_contents, jobs

__all__ = ["DatasetRepository"]


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
