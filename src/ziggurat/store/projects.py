"""Repository of projects: names that group jobs and datasets."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.entities import Project
from ziggurat.entities.names import check_name
from ziggurat.errors import MissingEntryError, UsageError
from ziggurat.store.database import Database
from ziggurat.store.tables import jobs, projects, short_text

__all__ = ["ProjectRepository", "ensure_project"]

_NAME = "The name of a project"


class ProjectRepository:
    """The projects; every method is one transaction.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def ensure(self, name: str, now: float) -> Project:
        """Return the project of that name, made where there is none.

        Raises:
            UsageError: where the name is empty.
        """
        _check(name)
        with self._database.write() as connection:
            ensure_project(connection, name, now)
            row = connection.execute(sa.select(projects).where(projects.c.name == name)).one()
            return Project(id=row.id, name=row.name, created=row.created)

    def all(self) -> list[tuple[Project, int]]:
        """Return all projects by name, each with how many jobs it has."""
        count = sa.select(sa.func.count()).where(jobs.c.project == projects.c.name).scalar_subquery()
        with self._database.read() as connection:
            rows = connection.execute(sa.select(projects, count.label("jobs")))
            found = [(Project(id=row.id, name=row.name, created=row.created), row.jobs) for row in rows]
        return sorted(found, key=lambda pair: (pair[0].name.casefold(), pair[0].name))

    def names(self) -> list[str]:
        """Return the names of all projects, in order."""
        return list(self._database.until_changed("project names", self._names))

    def _names(self) -> list[str]:
        with self._database.read() as connection:
            return sorted(
                connection.execute(sa.select(projects.c.name)).scalars(), key=lambda name: (name.casefold(), name)
            )

    def rename(self, name: str, new_name: str) -> None:
        """Give a project another name; its jobs stay in it.

        Raises:
            UsageError: where there is no such project, or another one has the new name.
        """
        _check(new_name)
        with self._database.write() as connection:
            _id_of(connection, name)
            if name == new_name:
                return
            if _find(connection, new_name) is not None:
                raise UsageError(f"There is a project {new_name} already.", advice="Choose another name.")
            connection.execute(sa.update(projects).where(projects.c.name == name).values(name=new_name))
            connection.execute(sa.update(jobs).where(jobs.c.project == name).values(project=new_name))

    def delete(self, name: str, *, move_jobs_to: str | None = None) -> None:
        """Remove a project that has no jobs, or whose jobs go to another one (empty: to none).

        Raises:
            UsageError: where there is no such project, it has jobs that are not moved, or they have nowhere to go.
        """
        with self._database.write() as connection:
            place = _id_of(connection, name)
            count = connection.execute(sa.select(sa.func.count()).where(jobs.c.project == name)).scalar_one()
            if count and move_jobs_to is None:
                raise UsageError(
                    f"The project `{name}` has {count} {'job' if count == 1 else 'jobs'}; one that is deleted "
                    "must be empty.",
                    advice="Move its jobs to another project first.",
                )
            if move_jobs_to == name:
                raise UsageError(f"{name} is the project that is deleted; its jobs must move to another one.")
            if move_jobs_to:
                _id_of(connection, move_jobs_to)
            connection.execute(sa.update(jobs).where(jobs.c.project == name).values(project=move_jobs_to or ""))
            connection.execute(sa.delete(projects).where(projects.c.id == place))


def ensure_project(connection: Connection, name: str, now: float) -> None:
    """Make a project where there is none of that name; an empty name stands for none."""
    if name and _find(connection, name) is None:
        connection.execute(sa.insert(projects).values(name=short_text(name, _NAME), created=now))


def _find(connection: Connection, name: str) -> int | None:
    return connection.execute(sa.select(projects.c.id).where(projects.c.name == name)).scalar()


def _id_of(connection: Connection, name: str) -> int:
    place = _find(connection, name)
    if place is None:
        raise MissingEntryError(f"There is no project {name}.", advice="Look at the list of projects.")
    return place


def _check(name: str) -> None:
    check_name(name, _NAME)
    short_text(name, _NAME)
    if not name.strip():
        raise UsageError("A project must have a name.", received=repr(name), advice="Give it one.")
