"""Read-only inspection of a database on a server: what it is, and which schema it has."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Final

from sqlalchemy import URL, inspect, text

from ziggurat.store.database import Database
from ziggurat.store.schema import REVISIONS
from ziggurat.store.urls import database_url

__all__ = ["DatabaseState", "inspect_database"]

_ANSWER_WITHIN_S: Final = 5
_VERSIONS: Final = "alembic_version"


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
        """Whether its tables are somebody else's."""
        return self.has_tables and not self.revision


def inspect_database(address: str) -> DatabaseState:
    """Return what a PostgreSQL database is.

    Raises:
        SettingsError: where the address is none.
        MissingDependencyError: where the driver is not installed.
        StorageError: where it does not answer, or lets nobody in.
    """
    with closing(Database(_impatient(database_url(address)))) as database, database.read() as connection:
        names = inspect(connection).get_table_names()
        revision = (
            connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalar() if _VERSIONS in names else ""
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
