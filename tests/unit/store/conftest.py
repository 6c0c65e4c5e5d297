"""Stores for the tests of this folder: each test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("alembic", reason="the extra `studio` is not installed")

from tests.unit.store.store_server import on_server
from ziggurat.store import Store

NOW = 1_700_000_000.0


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Path or URL of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "studio.db")
    return request.getfixturevalue("empty_postgresql")


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with Store.open(address, clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "studio.db", clock=lambda: NOW) as opened:
        yield opened


@pytest.fixture
def empty_postgresql(postgresql_url: str) -> str:
    on_server(postgresql_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return postgresql_url


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """URL of a private server that lives as long as the tests; skipped where none can be started."""
    pytest.importorskip("pg8000", reason="the extra `postgresql` (pg8000) is not installed")
    binaries = _postgresql_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server: neither on PATH nor below /usr/lib/postgresql")
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="ziggurat-pg-", dir="/tmp"))
    try:
        as_user = _own_by(folder, user)
    except (LookupError, OSError):
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    made = [binaries / "initdb", "-D", data, "-U", "ziggurat", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
    as_user([*made])
    access = data / "pg_hba.conf"
    access.write_text("host all guarded 127.0.0.1/32 scram-sha-256\n" + access.read_text())
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    as_user([binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])
    try:
        yield f"postgresql://ziggurat@127.0.0.1:{port}/postgres"
    finally:
        as_user([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"])
        shutil.rmtree(folder, ignore_errors=True)


def _postgresql_binaries() -> Path | None:
    found = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places += [Path(found).resolve().parent] if found else []
    return next((place for place in places if (place / "pg_ctl").exists() and (place / "initdb").exists()), None)


def _own_by(folder: Path, user: str) -> Callable[[list[object]], None]:
    if os.geteuid() == 0:
        shutil.chown(folder, user)

    def as_user(command: list[object]) -> None:
        options: dict[str, Any] = {"user": user, "group": user} if os.geteuid() == 0 else {}
        said = subprocess.run([str(part) for part in command], capture_output=True, cwd=folder, text=True, **options)
        assert said.returncode == 0, said.stdout + said.stderr

    return as_user
