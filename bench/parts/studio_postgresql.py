"""Private PostgreSQL server for the studio benchmark, where PostgreSQL's programs are installed."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["postgresql"]


@contextmanager
def postgresql() -> Iterator[str | None]:
    """Give the URL of an empty database; None where no server can be started. It does not wait for the disk."""
    programs = _programs()
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="ziggurat-bench-pg-"))
    try:
        if programs is None or not _give(folder, user):
            yield None
            return
        data, port = folder / "data", _free_port()
        _call([programs / "initdb", "-D", data, "-U", "ziggurat", "-A", "trust", "-E", "UTF8", "--locale=C"], user)
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c synchronous_commit=off"
        )
        control = [programs / "pg_ctl", "-D", data, "-w"]
        _call([*control, "-l", folder / "log", "-o", options, "start"], user)
        try:
            yield f"postgresql://ziggurat@127.0.0.1:{port}/postgres"
        finally:
            _call([*control, "-m", "fast", "stop"], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists() and (place / "initdb").exists()), None)


def _give(folder: Path, user: str) -> bool:
    """Let a user have the folder: PostgreSQL does not run as root. Return whether there is such a user."""
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, user)
    except (LookupError, OSError):
        return False
    return True


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _call(command: Sequence[object], user: str) -> None:
    who = user if os.geteuid() == 0 else None
    words = [str(part) for part in command]
    # What the server inherits stays open as long as it runs: no pipe, whose end would never come.
    subprocess.run(words, check=True, user=who, group=who, cwd="/", stdout=subprocess.DEVNULL)
