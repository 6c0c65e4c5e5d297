"""Database connections: the address of a store, one writer at a time, concurrent readers, failures as StorageError."""

from __future__ import annotations

import os
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from ziggurat.errors import LostDatabaseError, MissingDependencyError, SettingsError, StorageError, UsageError
from ziggurat.layout import Places, present_paths
from ziggurat.store.dialects import connector

__all__ = [
    "Database",
    "Folders",
    "database_url",
]


_BUSY_S = 30
_READERS = 24
_MOST_ANSWERS: Final = 256
_WRITER_LOCK = 0x7A696767  # PostgreSQL's advisory lock of the one writer, the same in every process

_Answer = TypeVar("_Answer")


class Database:
    """A database, as transactions see it.

    A transaction of ``write`` holds the only right to write from its first statement on, in this process and in others:
    what it read stays true until it ends. Transactions of ``read`` go on beside it and see one moment.

    Args:
        url: of SQLite or PostgreSQL.
        folders: what the folders of its jobs are relative to.
    """

    def __init__(self, url: URL, folders: Folders | None = None) -> None:
        self.url = url
        self.folders = folders or Folders()
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._file: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._writer = _engine(url, pool_size=1, read_only=False)
        self._readers = _engine(url, pool_size=_READERS, read_only=True)
        self._watch = _engine(url, pool_size=1, read_only=True)
        self._watch_lock = threading.Lock()
        self._watching: Any = None
        self._answers: tuple[int, dict[Hashable, Any]] = (-1, {})

    @property
    def place(self) -> str:
        """Where it is, for messages; never with a password."""
        return _place(self.url)

    def is_inside(self, folder: Path) -> bool:
        """Return whether it is a file below a folder, and so moved and copied with it."""
        return self.is_sqlite and Path(os.path.realpath(str(self.url.database))).is_relative_to(
            os.path.realpath(folder)
        )

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one moment and cannot write.

        Raises:
            StorageError: where the database does not answer.
            LostDatabaseError: where its file was removed or replaced.
        """
        self._refuse_lost()
        with self._failures(), self._readers.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give the connection that may write; all of it happens, or nothing.

        Raises:
            StorageError: where the disk is full, the file is not writable, or the database does not answer.
            LostDatabaseError: where its file was removed or replaced.
        """
        self._refuse_lost()
        with self._lock, self._failures(), self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})"))
            yield connection

    def change_number(self) -> int | None:
        """Return a number that differs after every change of the database; None for PostgreSQL, which has none.

        Raises:
            StorageError: if the database does not answer.
            LostDatabaseError: if its file was removed or replaced.
        """
        if not self.is_sqlite:
            return None
        self._refuse_lost()
        # The number counts the changes by other connections, and is comparable for one connection only: it stays open.
        # SQLAlchemy's transaction and statement, and the pool's give and take, would cost ten times as much.
        with self._failures(), self._watch_lock:
            if self._watching is None:
                self._watching = self._watch.raw_connection()
            return self._watching.cursor().execute("PRAGMA data_version").fetchone()[0]

    def until_changed(self, question: Hashable, ask: Callable[[], _Answer]) -> _Answer:
        """Return an answer, which is kept until the database is changed by any process.

        Args:
            question: what is asked; equal questions have equal answers while the database stays the same.
            ask: reads the answer from the database; callers must not modify it.

        Raises:
            StorageError: if the database does not answer.
            LostDatabaseError: if its file was removed or replaced.
        """
        number = self.change_number()
        if number is None:
            return ask()
        kept = self._answers
        if kept[0] != number or len(kept[1]) >= _MOST_ANSWERS:
            kept = self._answers = (number, {})
        if question not in kept[1]:
            # What changes from here on comes under the next number: an answer is never older than its number says.
            kept[1][question] = ask()
        return kept[1][question]

    def close(self) -> None:
        """Close all connections; closing twice does nothing."""
        with self._lock, self._failures():
            with self._watch_lock:
                watching, self._watching = self._watching, None
            if watching is not None:
                watching.close()
            self._watch.dispose()
            self._readers.dispose()
            self._writer.dispose()

    def _refuse_lost(self) -> None:
        """Refuse to go on with a file that has lost its name: SQLite would read and write it as if it were there."""
        if not self.is_sqlite:
            return
        path = str(self.url.database)
        try:
            there = os.stat(path)
        except FileNotFoundError:
            if self._file is None:
                return  # SQLite makes it
            raise _lost(path, "the file is gone") from None
        except OSError as error:
            raise _storage_error(self.place, error) from error
        now = (there.st_dev, there.st_ino)
        self._file = self._file or now
        if now != self._file:
            raise _lost(path, "another file is there")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise _storage_error(self.place, error.orig) from error
        except sqlite3.Error as error:
            raise _storage_error(self.place, error) from error
        except OverflowError as error:
            raise UsageError("A whole number in the store must fit into 64 bits.", received=str(error)) from error
        except (PoolTimeoutError, ConnectionError, TimeoutError, ssl.SSLError) as error:
            # The driver of PostgreSQL lets some errors of a cut connection pass as they are.
            raise _storage_error(self.place, error) from error


def _lost(path: str, received: str) -> LostDatabaseError:
    return LostDatabaseError(
        f"The studio's database must stay where it is while the studio runs: {path}.",
        received=received,
        advice="Stop the studio with `ziggurat down`. Then put a backup there, or call `ziggurat reindex`: it rebuilds "
        "the list of jobs from their folders.",
    )


def _engine(url: URL, *, pool_size: int, read_only: bool) -> Engine:
    options: dict[str, Any] = {"poolclass": QueuePool, "pool_size": pool_size, "max_overflow": 0}
    # The connection that was used last is used next: its cache is warm, and the caches of the others stay empty.
    options["pool_use_lifo"] = True
    if url.get_backend_name() == "sqlite":
        # Transactions are begun by our own statement, below: the driver would begin them too late.
        options["connect_args"] = {"timeout": _BUSY_S, "isolation_level": None, "check_same_thread": False}
    else:
        options["creator"] = connector(url)
        options["pool_pre_ping"] = True
        options["isolation_level"] = "REPEATABLE READ" if read_only else "READ COMMITTED"
    try:
        # Statements stay out of errors: their values may be password hashes.
        engine = create_engine(url, hide_parameters=True, pool_timeout=_BUSY_S, **options)
    except ModuleNotFoundError as error:
        raise MissingDependencyError("pg8000", extra="postgresql", purpose="a store in PostgreSQL") from error
    if url.get_backend_name() == "sqlite":
        _set_up_sqlite(engine, read_only)
    else:
        _set_up_postgresql(engine)
    return engine


def _set_up_postgresql(engine: Engine) -> None:
    # The driver sends row by row what is not one statement.
    engine.dialect.use_insertmanyvalues_wo_returning = True

    @event.listens_for(engine, "handle_error")
    def end_connection(context: ExceptionContext) -> None:
        # What broke off amid the talk with the server leaves answers in the connection that would pass for the next's.
        if context.sqlalchemy_exception is None:
            context.is_disconnect = True


def _set_up_sqlite(engine: Engine, read_only: bool) -> None:
    start = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        if not read_only:  # a foreign file is only read, and stays unchanged
            _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous=NORMAL")  # a cut of power may lose the last seconds, never the file
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA journal_size_limit=67108864")
        connection.execute(f"PRAGMA cache_size={-8000 if read_only else -32000}")
        if read_only:
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(start)


def _use_write_ahead_log(connection: Any) -> None:
    for patience in range(100):
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except Exception as error:
            # Two that open a new file at once: SQLite lets the second fail here without waiting.
            if "locked" not in str(error) or patience == 99:
                raise
            time.sleep(0.05)
        else:
            return


def _place(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def _storage_error(place: str, error: BaseException | None) -> StorageError:
    said = _words(error)
    return StorageError(
        f"The studio's database must be readable and writable: {place}.", received=said, advice=_advice(said.lower())
    )


def _words(error: BaseException | None) -> str:
    said = error.args[0] if error is not None and error.args else ""
    if isinstance(said, dict):  # as PostgreSQL says it: M is the message, C the code that no language changes
        return f"{said.get('M', '')} (SQLSTATE {said.get('C', '')})"
    return str(error).strip().splitlines()[0] if str(said).strip() else type(error).__name__


def _advice(said: str) -> str:
    if "full" in said or "i/o error" in said or "no space" in said:
        return "Free space on its disk; what was stored before is still there."
    if "malformed" in said or "not a database" in said:
        return "Put a backup in its place, or move it away and rebuild the jobs with: ziggurat reindex."
    if "locked" in said or "timeout" in said or "limit" in said:
        return "Another process holds it: try again, or end that process."
    if "authentication" in said or "sqlstate 28" in said:
        return "Mend the user or the password of the address; docs/how-to/use-postgresql.md says where it may stand."
    if "readonly" in said or "unable to open" in said or "permission" in said:
        return "Mend the rights of the file and of its folder."
    return "Look whether the database is there and answers; docs/how-to/use-postgresql.md helps with PostgreSQL."


_RULE = "A store is the path of an SQLite file, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE`."


def database_url(url_or_path: str | os.PathLike[str]) -> URL:
    """Return the URL of a store; the folder of an SQLite file is made.

    Raises:
        SettingsError: where it is neither.
        StorageError: where the folder cannot be made.
    """
    text = os.fspath(url_or_path)
    if "://" not in text:
        return _sqlite(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise SettingsError(_RULE, received="a URL that cannot be read") from error  # it may hold a password
    if "@" in (url.host or ""):  # the end of a password would be shown as part of the host
        raise SettingsError("In the password of an address, `@` is written `%40`.", received="an address with two `@`")
    backend = url.get_backend_name()
    if backend == "sqlite":
        return _sqlite(url.database or "")
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+pg8000")
    raise SettingsError(_RULE, received=f"{backend}://…", advice="Use one of them.")


def _sqlite(path: str) -> URL:
    if path in ("", ":memory:"):
        raise SettingsError(_RULE, received=repr(path), advice="Name a file: a store outlives the process.")
    file = Path(path).absolute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The folder of the studio's database must be there: {file.parent}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Make the folder, or mend the rights of the one above it.",
        ) from error
    return URL.create("sqlite", database=str(file))


class Folders:
    """Turns folders of jobs into what the database holds, and back.

    Args:
        workspace: absolute path of the folder of everything; None where it is not known: then all stays as it is.
        places: where the workspace was before.

    Attributes:
        loaded: cache: key of a job → its row, and the job that was made from it with these folders.
    """

    def __init__(self, workspace: Path | None = None, places: Places | None = None) -> None:
        self._workspace = None if workspace is None else Path(os.path.abspath(workspace))
        self._places = places or Places()
        self.loaded: dict[int, tuple[tuple[Any, ...], Any]] = {}

    def stored(self, folder: str) -> str:
        """Return a folder as the database holds it."""
        if self._workspace is None:
            return folder
        plain = Path(os.path.abspath(folder))
        inside = plain != self._workspace and plain.is_relative_to(self._workspace)
        return plain.relative_to(self._workspace).as_posix() if inside else folder

    def present(self, stored: str) -> str:
        """Return the absolute path of a folder that the database holds."""
        return stored if self._workspace is None or not stored else os.path.normpath(self._workspace / stored)

    def spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a spec in which paths into the workspace are those of now."""
        if self._workspace is None:
            return spec
        moved = {name: present_paths(value, self._workspace, self._places) for name, value in spec.items()}
        return moved | {name: spec[name] for name in ("name", "network") if name in spec}
