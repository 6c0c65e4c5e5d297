"""Schema state: created where there is none, migrated where it is older, refused where it is newer, and shown."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, inspect, text

from ziggurat.errors import StorageError
from ziggurat.store.database import Database, database_url

__all__ = [
    "REVISIONS",
    "DatabaseState",
    "inspect_database",
    "prepare_schema",
]


REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005")
"""All revisions, oldest first; the files are in ``migrations/versions``."""

_VERSION_TABLE = "alembic_version"


def prepare_schema(database: Database, *, backup_folder: Path | None, backup_made: bool) -> str:
    """Make or migrate the schema, and return the revision that was there before; empty for a new database.

    Args:
        database: to look at.
        backup_folder: where an SQLite file is copied to before it is migrated; None for its own folder.
        backup_made: whether a person says that a PostgreSQL database was backed up.

    Raises:
        StorageError: if the schema is newer, is foreign, or cannot be backed up.
    """
    with database.read() as connection:
        before = _revision(connection, database.place)
    if before == REVISIONS[-1]:
        return before
    with database.write() as connection:
        before = _revision(connection, database.place)  # another process may have been quicker
        if before == REVISIONS[-1]:
            return before
        if before and database.is_sqlite:
            _copy_sqlite(Path(str(database.url.database)), backup_folder)
        elif before and not backup_made:
            raise _backup_needed(database.place, before)
        _upgrade(connection, REVISIONS[-1])
    return before


def _revision(connection: Connection, place: str) -> str:
    names = inspect(connection).get_table_names()
    if _VERSION_TABLE not in names:
        if names:
            raise StorageError(
                f"The database must be empty or the studio's own: {place}.",
                received=f"tables {', '.join(sorted(names)[:5])}",
                advice="Name another file or database.",
            )
        return ""
    revision = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()
    if revision is not None and revision not in REVISIONS:
        raise StorageError(
            f"The database must have a schema that this release knows: {place}.",
            received=f"revision {revision}; the newest known is {REVISIONS[-1]}",
            advice="Install the newer release that made it, or put back a backup of before.",
        )
    return revision or ""


def _upgrade(connection: Connection, revision: str) -> None:
    from alembic import command  # half a second of processor time, which a current schema does not need
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _copy_sqlite(path: Path, folder: Path | None) -> Path:
    """Copy the file as its last finished transaction left it; the caller holds the right to write."""
    folder = path.parent if folder is None else folder
    target = _free_name(folder / f"{path.name}.before-{REVISIONS[-1]}")
    partial = target.with_name(target.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)  # hashes of passwords are in it
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
        partial.rename(target)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StorageError(
            f"The database must be backed up to {target} before its schema is changed.",
            received=str(error),
            advice="Free space there, or name another folder for backups; nothing was changed.",
        ) from error
    return target


def _free_name(path: Path) -> Path:
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate


def _backup_needed(place: str, before: str) -> StorageError:
    return StorageError(
        f"A PostgreSQL database must be backed up before its schema is changed: {place}.",
        received=f"revision {before}; this release needs {REVISIONS[-1]}",
        advice="Back it up with `pg_dump`, then say so: `ziggurat up --backup-made` (in Python: `backup_made=True`).",
    )


_ANSWER_WITHIN_S: Final = 5


@dataclass(frozen=True, kw_only=True)
class DatabaseState:
    """What was seen of a database.

    Args:
        place: its address, without a password.
        version: of the server, such as ``15.4``.
        encoding: of its texts, such as ``UTF8``.
        revision: of its schema; empty where it has none.
        has_tables: whether it has tables at all.
        newest: revision that this release knows.
    """

    place: str
    version: str
    encoding: str
    revision: str
    has_tables: bool
    newest: str = REVISIONS[-1]

    @property
    def is_newer(self) -> bool:
        """Whether a newer release made its schema."""
        return bool(self.revision) and self.revision not in REVISIONS

    @property
    def is_foreign(self) -> bool:
        """Whether its tables are foreign."""
        return self.has_tables and not self.revision


def inspect_database(address: str) -> DatabaseState:
    """Return what a PostgreSQL database is.

    Raises:
        SettingsError: where the address is none.
        MissingDependencyError: where the driver is not installed.
        StorageError: if it does not answer, or refuses access.
    """
    with closing(Database(_impatient(database_url(address)))) as database, database.read() as connection:
        names = inspect(connection).get_table_names()
        revision = (
            connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()
            if _VERSION_TABLE in names
            else ""
        )
        return DatabaseState(
            place=database.place.partition("?")[0],
            version=str(connection.execute(text("SHOW server_version")).scalar()).split()[0],
            encoding=str(connection.execute(text("SHOW server_encoding")).scalar()),
            revision=str(revision or ""),
            has_tables=bool(names),
        )


def _impatient(url: URL) -> URL:
    return url if "connect_timeout" in url.query else url.update_query_dict({"connect_timeout": str(_ANSWER_WITHIN_S)})
