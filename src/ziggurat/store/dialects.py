"""Differences between SQLite and PostgreSQL: expressions, bulk reads and writes, and the PostgreSQL driver."""

from __future__ import annotations

import re
import socket
import ssl
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import URL, Connection, Integer, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from ziggurat.errors import SettingsError, UnknownNameError

__all__ = [
    "bytewise",
    "connector",
    "position_in",
    "read_columns",
    "write_rows",
]


class bytewise(GenericFunction[str]):  # noqa: N801 - reads as a function of SQL
    """A text that is compared and sorted by code points, whatever the locale of the database."""

    type = Text()
    inherit_cache = True


class position_in(GenericFunction[int]):  # noqa: N801 - reads as a function of SQL
    """Where in a text, from 1, another text begins; 0 where it does not."""

    type = Integer()
    inherit_cache = True


def write_rows(
    connection: Connection, rows: Sequence[tuple[float | None, ...]], *, sqlite: str, postgresql: str
) -> None:
    """Run one statement for many rows of numbers.

    The driver of PostgreSQL would send row by row, each in three round trips: it gets the columns as arrays instead.

    Args:
        connection: inside a transaction that may write.
        rows: of numbers, all of one length; without any, nothing happens.
        sqlite: statement that takes one row.
        postgresql: statement that takes one array for each column, as text.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(sqlite, list(rows))
    else:
        connection.exec_driver_sql(postgresql, tuple(map(_array, zip(*rows))))


def read_columns(connection: Connection, query: sa.Select[*tuple[Any, ...]]) -> list[Sequence[float | None]]:
    """Return the columns of what a query of numbers finds, in its order.

    The driver of PostgreSQL takes ten times as long for a row as SQLite: it gets each column as one text instead.
    """
    if connection.dialect.name == "sqlite":
        return list(zip(*connection.execute(query).all()))
    found = query.subquery()
    arrays = sa.select(*(sa.cast(sa.func.array_agg(column), sa.Text) for column in found.c))
    kinds = [int if isinstance(column.type, sa.Integer) else float for column in found.c]
    texts = connection.execute(arrays).one()
    return [_numbers(text, kind) for text, kind in zip(texts, kinds) if text is not None]


def _numbers(array: str, kind: Callable[[str], float]) -> list[float | None]:
    parts = array[1:-1].split(",")
    if "NULL" in array:
        return [None if part == "NULL" else kind(part) for part in parts]
    return list(map(kind, parts))


def _array(column: Sequence[float | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"


@compiles(bytewise)
def _plain(element: Any, compiler: Any, **options: Any) -> str:
    return compiler.process(next(iter(element.clauses)), **options)


@compiles(bytewise, "postgresql")
def _collated(element: Any, compiler: Any, **options: Any) -> str:
    return f'({compiler.process(next(iter(element.clauses)), **options)} COLLATE "C")'


@compiles(position_in)
def _instr(element: Any, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(position_in, "postgresql")
def _strpos(element: Any, compiler: Any, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


OPTIONS: Final = ("application_name", "connect_timeout", "host", "passfile", "sslmode", "sslrootcert")
"""What may follow the ``?`` of an address; the names and their sense are those of PostgreSQL's own programs."""

TLS_MODES: Final = ("disable", "prefer", "require", "verify-ca", "verify-full")

_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
_FIELD = r"((?:\\.|[^\\:])*)"
_PASSWORD_LINE = re.compile(":".join([_FIELD] * 4) + ":(.*)")


@dataclass(frozen=True, kw_only=True)
class _Place:
    host: str
    port: int
    database: str
    user: str

    @property
    def socket_path(self) -> str:
        """Path of the server's local socket; empty where the host is one of the network."""
        return f"{self.host}/.s.PGSQL.{self.port}" if self.host.startswith("/") else ""


def connector(url: URL) -> Callable[[], Any]:
    """Return a function that makes a connection of the driver pg8000; every failure is one of the driver's errors.

    Args:
        url: with a user, and with no other options than ``OPTIONS``.

    Raises:
        SettingsError: where the address lacks something, or an option has a value that it cannot have.
        UnknownNameError: where an option or a TLS mode is unknown.
    """
    options = _options(url)
    if not url.username:
        rule = "The address of a PostgreSQL database must name the user: `postgresql://USER@HOST/DATABASE`."
        raise SettingsError(rule, received="no user")
    place = _Place(
        host=options.get("host") or url.host or "localhost",
        port=url.port or 5432,
        database=url.database or url.username,
        user=url.username,
    )
    password = url.password
    if password is None and "passfile" in options:
        password = _password(Path(options["passfile"]).expanduser(), place)
    words: dict[str, Any] = {
        "database": place.database,
        "password": str(password or ""),  # without one the driver fails at a server that asks for it
        "application_name": options.get("application_name", "ziggurat"),
    }
    timeout_s = _timeout_s(options.get("connect_timeout", "30"))
    tls = _tls(options.get("sslmode", "prefer"), options.get("sslrootcert"))
    return lambda: _connect(place, words, timeout_s, tls)


def _connect(place: _Place, words: dict[str, Any], timeout_s: float, tls: ssl.SSLContext | bool | None) -> Any:
    import pg8000.dbapi

    try:
        if place.socket_path:
            return _driver_connection()(place.user, unix_sock=place.socket_path, ssl_context=False, **words)
        opened = _open(place, timeout_s)
        try:
            return _driver_connection()(place.user, host=place.host, sock=opened, ssl_context=tls, **words)
        except BaseException:
            opened.close()
            raise
    except pg8000.dbapi.Error:
        raise
    except Exception as error:  # of the socket, of TLS, or of the driver's talk about the password
        raise pg8000.dbapi.InterfaceError(f"no connection: {error}") from error


@cache
def _driver_connection() -> Callable[..., Any]:
    import pg8000.dbapi

    class Connection(pg8000.dbapi.Connection):
        def close(self) -> None:
            file = self._sock
            try:
                super().close()
            finally:
                # The driver forgets its file without closing it; the error that told of a cut may hold it for long.
                if file is not None:
                    with suppress(OSError):  # what was not sent yet cannot be sent
                        file.close()

    return Connection


def _open(place: _Place, timeout_s: float) -> socket.socket:
    opened = socket.create_connection((place.host, place.port), timeout_s)
    opened.settimeout(None)  # a migration may take its time; of a server that is gone, probes tell
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return opened


def _options(url: URL) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, values in url.normalized_query.items():
        if name not in OPTIONS:
            raise UnknownNameError("option of a PostgreSQL address", name, OPTIONS)
        found[name] = values[-1]
    return found


def _timeout_s(text: str) -> float:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 3600:
        raise SettingsError("`connect_timeout` must be a whole number of seconds from 1 to 3600.", received=text)
    return float(text)


def _tls(mode: str, root_certificate: str | None) -> ssl.SSLContext | bool | None:
    """Return what the driver takes: False for none, None for TLS where the server has it, else a context."""
    if mode not in TLS_MODES:
        raise UnknownNameError("sslmode", mode, TLS_MODES)
    if mode in ("disable", "prefer"):
        return None if mode == "prefer" else False
    try:
        context = ssl.create_default_context(cafile=root_certificate)
    except (OSError, ValueError) as error:
        rule = "`sslrootcert` must be a file of certificates in PEM form."
        raise SettingsError(rule, received=f"{root_certificate}: {error}") from error
    context.check_hostname = mode == "verify-full"
    if mode == "require" and root_certificate is None:
        context.verify_mode = ssl.CERT_NONE
    return context


def _password(path: Path, place: _Place) -> str | None:
    """Return the password of the first line ``HOST:PORT:DATABASE:USER:PASSWORD`` that fits; ``*`` fits all."""
    try:
        mode, lines = path.stat().st_mode, path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"`passfile` must be a readable file of passwords: {path}.", received=str(error)) from error
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(
            f"Only its owner may read a file of passwords: {path}.",
            received=f"mode {stat.S_IMODE(mode):o}",
            advice=f"Mend it with: chmod 600 {path}.",
        )
    wanted = (place.host, str(place.port), place.database, place.user)
    for line in lines:
        parts = None if line.startswith("#") else _PASSWORD_LINE.fullmatch(line)
        if parts and all(part in ("*", own) for part, own in zip(map(_unescaped, parts.groups()), wanted)):
            return _unescaped(parts[5])
    return None


def _unescaped(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field)
