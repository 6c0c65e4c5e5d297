"""Persistent store of the studio in SQLite or PostgreSQL, with one repository for each kind of record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

if _absent := [name for name in ("alembic", "sqlalchemy") if find_spec(name) is None]:  # to say it in words
    from ziggurat.errors import MissingDependencyError

    raise MissingDependencyError(_absent[0], extra="studio", purpose="the studio's store")

from ziggurat.layout import Places
from ziggurat.store.accounts import AccountStore, digest_of
from ziggurat.store.curves import CurveRepository
from ziggurat.store.database import Database, Folders, database_url
from ziggurat.store.events import EventRepository
from ziggurat.store.job_names import JobNameRepository, NameRange
from ziggurat.store.jobs import DatasetRepository, JobRepository
from ziggurat.store.projects import ProjectRepository
from ziggurat.store.records import AuditFilter, AuditPage, AuditRepository, SettingRepository
from ziggurat.store.reindex import JobOnDisk, ReindexReport, index_job, rebuild
from ziggurat.store.relocation import Relocation, settle
from ziggurat.store.saved_items import SavedItemRepository
from ziggurat.store.schema import prepare_schema

__all__ = ["AuditFilter", "AuditPage", "JobOnDisk", "NameRange", "ReindexReport", "Relocation", "Store", "digest_of"]


class Store:
    """What the studio remembers. Every method of a repository is one transaction and may be called from any thread.

    Args:
        database: with the newest schema; ``Store.open`` gives one.
        clock: returns seconds since 1970.

    Attributes:
        jobs: jobs and the queue.
        names: names that filters of jobs may use.
        events: the way of what workers say into the store.
        curves: curves, attempts, checkpoints and messages of jobs.
        datasets: what finished datasets hold.
        people: users, sessions and tokens.
        projects: names under which jobs are kept together.
        audit: the audit log.
        settings: the studio's own few values.
        saved_items: views, presets and drafts of users.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self.jobs = JobRepository(database, clock)
        self.names = JobNameRepository(database)
        self.events = EventRepository(database)
        self.curves = CurveRepository(database)
        self.datasets = DatasetRepository(database, clock)
        self.people = AccountStore(database)
        self.projects = ProjectRepository(database)
        self.audit = AuditRepository(database)
        self.settings = SettingRepository(database)
        self.saved_items = SavedItemRepository(database, clock)

    @classmethod
    def open(
        cls,
        url_or_path: str | os.PathLike[str],
        *,
        backup_folder: Path | None = None,
        backup_made: bool = False,
        workspace: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open a store; its schema is made where there is none, and migrated where it is older.

        Args:
            url_or_path: path of an SQLite file, ``sqlite:///PATH``, or ``postgresql://USER@HOST/DATABASE``.
            backup_folder: where an SQLite file is copied to before it is migrated, as ``NAME.before-REVISION``; its
                own folder where left out.
            backup_made: a person says that the PostgreSQL database was backed up: it may be migrated.
            workspace: what the folders of jobs are relative to; where left out, the folder of an SQLite file.
            clock: returns seconds since 1970.

        Raises:
            SettingsError: where it is neither path nor URL of a known database.
            MissingDependencyError: where the driver of PostgreSQL is not installed.
            StorageError: where it cannot be read or written, its schema is newer, or it was not backed up.
        """
        url = database_url(url_or_path)
        if workspace is None and url.get_backend_name() == "sqlite":
            workspace = Path(str(url.database)).parent
        known = None if workspace is None else Places.of(workspace)
        database = Database(url, Folders(workspace, known))
        try:
            prepare_schema(database, backup_folder=backup_folder, backup_made=backup_made)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    @property
    def place(self) -> str:
        """Path of the file, or the URL without its password."""
        return self._database.place

    def change_number(self) -> int | None:
        """Return a number that differs after every change of the store; None for PostgreSQL, which has none.

        Raises:
            StorageError: if the database does not answer.
        """
        return self._database.change_number()

    def settle(self, workspace: Path, *, take_over: bool = False) -> Relocation | None:
        """Bring the store and its workspace in line; return where the workspace was, if that was elsewhere.

        Args:
            workspace: the folder of everything; no other process serves it.
            take_over: a person says that a database outside of the workspace belongs to this one from now on.

        Raises:
            JobError: where the database belongs to another workspace, or folders of a copy are those of the original.
            StorageError: where the workspace cannot be written.
        """
        return settle(self._database, Path(os.path.abspath(workspace)), take_over=take_over)

    def reindex(self, workspace_folder: Path, read_job: Callable[[Path], JobOnDisk]) -> ReindexReport:
        """Rebuild jobs, attempts, checkpoints and curves from the folders alone.

        Users, sessions, tokens, audit and settings stay. A job whose folder is gone stays and is reported.

        Args:
            workspace_folder: with ``jobs/`` and ``datasets/``.
            read_job: returns what a folder says; an error of Ziggurat's is reported, and the next folder comes.
        """
        return rebuild(self._database, self.events, workspace_folder, read_job)

    def take_in(self, on_disk: JobOnDisk) -> None:
        """Add a job that another process created in the workspace.

        Raises:
            UsageError: where a text is too long for the store.
            UnknownNameError: where its files name a field that there is not.
        """
        index_job(self._database, self.events, on_disk)

    def close(self) -> None:
        """Close all connections; closing twice does nothing."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
