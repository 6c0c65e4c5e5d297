"""Studio diagnostics for ``ziggurat doctor``: server, port, database; they change nothing."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ziggurat import __version__
from ziggurat.errors import MissingDependencyError, UsageError
from ziggurat.workspace.doctor_database import examine_database
from ziggurat.workspace.doctor_finding import Finding
from ziggurat.workspace.ports import free_port_after, port_owner, take_port
from ziggurat.workspace.remarks import unlisted_folders, unlisted_remark
from ziggurat.workspace.server_state import ServerState, read_server

try:
    from ziggurat.store import schema
except (ImportError, MissingDependencyError):  # a package is missing, which is said elsewhere
    _REVISIONS: tuple[str, ...] = ()
else:
    _REVISIONS = schema.REVISIONS

__all__ = ["examine_studio"]

_PORT: Final = 5000
_ANSWER_WITHIN_S: Final = 5.0
_REINDEX: Final = "Put a backup in its place, or move it away and call: ziggurat reindex"
_REINDEX_OR_BACKUP: Final = "Then put a backup in its place, or call: ziggurat reindex"


def examine_studio(workspace: Path, *, database: str = "", port: int = _PORT) -> Iterator[Finding]:
    """Yield what is found about the studio of a workspace.

    Args:
        workspace: the folder.
        database: its address or path; empty for ``studio.db`` in the workspace.
        port: at which it would listen.
    """
    state = read_server(workspace)
    yield _server(workspace, state)
    if state is None or not state.is_alive:
        yield _port(port)
    is_server = "://" in database and not database.startswith("sqlite")
    path = Path(database.removeprefix("sqlite:///")) if database else workspace / "studio.db"
    if is_server:
        yield examine_database(database)
        return
    if state is not None and state.is_alive and state.is_here and not path.is_file():
        text = f"{path} is gone while the studio runs: it cannot go on"
        yield Finding("studio", "database", "problem", text, f"Call `ziggurat down`. {_REINDEX_OR_BACKUP}")
    else:
        yield _database(path)
    yield from _unlisted(workspace, path)


def _server(workspace: Path, state: ServerState | None) -> Finding:
    if state is None:
        return Finding("studio", "server", "ok", "does not run; start it with: ziggurat up")
    place = f"{state.address}, process {state.pid} on {state.host}"
    if not state.is_alive:
        text = f"ended without a word ({place}): it was killed, or the machine went down"
        return Finding("studio", "server", "note", text, "Start it again with `ziggurat up`; jobs were not disturbed.")
    if state.is_here and not _answers(state.address):
        advice = f"End it with `ziggurat down`; the cause may stand in {workspace / 'logs' / 'server.log'}."
        return Finding("studio", "server", "problem", f"does not answer ({place})", advice)
    if state.version != __version__:
        text = f"runs as version {state.version}, and {__version__} is installed ({place})"
        return Finding("studio", "server", "note", text, "Call `ziggurat down`, then `ziggurat up`; jobs go on.")
    return Finding("studio", "server", "ok", f"runs at {place}")


def _answers(address: str) -> bool:
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), _ANSWER_WITHIN_S) as connection:
            connection.settimeout(_ANSWER_WITHIN_S)
            connection.sendall(f"GET / HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
            return connection.recv(5) == b"HTTP/"
    except (OSError, ValueError):
        return False


def _port(port: int) -> Finding:
    try:
        take_port("127.0.0.1", port).close()
    except UsageError:
        free = free_port_after("127.0.0.1", port)
        advice = f"Use another one: ziggurat up --port {free}" if free else "Use another one with --port."
        return Finding("studio", "port", "note", f"{port} is taken by {port_owner(port)}", advice)
    return Finding("studio", "port", "ok", f"{port} is free" if port else "any that is free")


def _database(path: Path) -> Finding:
    if not path.is_file():
        return Finding("studio", "database", "ok", "none yet; the first `ziggurat up` makes it")
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding("studio", "database", "problem", f"{path} cannot be written", "Mend its rights and its owner.")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            revision = _revision(connection)
    except sqlite3.Error as error:
        return Finding("studio", "database", "problem", f"{path} cannot be read: {error}", _REINDEX)
    if found != "ok":
        return Finding("studio", "database", "problem", f"{path} is damaged: {found}", _REINDEX)
    return _judged(path, revision)


def _unlisted(workspace: Path, path: Path) -> Iterator[Finding]:
    """Yield a note where folders hold jobs that the database does not have; nothing where it cannot be read."""
    known: set[str] = set()
    if path.is_file():
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                if _revision(connection):
                    known = {row[0] for row in connection.execute("SELECT id FROM jobs")}
        except sqlite3.Error:
            return
    remark = unlisted_remark(unlisted_folders(workspace, known))
    if remark:
        yield Finding("studio", "jobs", "note", remark.partition(":")[0], "End the studio, then call: ziggurat reindex")


def _revision(connection: sqlite3.Connection) -> str:
    named = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
    if not connection.execute(named).fetchone()[0]:
        return ""
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return "" if row is None else str(row[0])


def _judged(path: Path, revision: str) -> Finding:
    size = f"{path.stat().st_size / 2**20:.1f} MB"
    if _REVISIONS and revision and revision not in _REVISIONS:
        text = f"{path} was made by a newer release (revision {revision}; this one knows {_REVISIONS[-1]})"
        return Finding("studio", "database", "problem", text, "Install that release, or put back a backup of before.")
    if stat.S_IMODE(path.stat().st_mode) & 0o007:
        text = f"{path} can be read by everybody on this machine; it holds hashes of passwords"
        return Finding("studio", "database", "note", text, f"Call: chmod o= {path}")
    if _REVISIONS and revision and revision != _REVISIONS[-1]:
        text = f"{path}, revision {revision}, {size}; the next start brings it to {_REVISIONS[-1]}, after a copy"
        return Finding("studio", "database", "ok", text)
    return Finding("studio", "database", "ok", f"{path}, revision {revision or 'none yet'}, {size}, sound")
