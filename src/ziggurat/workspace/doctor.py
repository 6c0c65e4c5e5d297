"""Diagnostics for ``ziggurat doctor``: what is installed, what does not work, and how to fix it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from ziggurat import __version__
from ziggurat.cluster.slurm.commands import SlurmCommands
from ziggurat.entities import NodeResources
from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.errors import JobError, MissingDependencyError, SettingsError, StorageError, UnknownNameError, UsageError
from ziggurat.formatting import as_bytes
from ziggurat.jobs.executor import ExecutorOptions
from ziggurat.nvidia import Accelerators, is_driver_loaded
from ziggurat.plugins import GROUPS, available, load
from ziggurat.settings import Settings
from ziggurat.workspace.frameworks import why_backend_does_not_work, worker_environment
from ziggurat.workspace.job_folders import unlisted_folders, unlisted_remark
from ziggurat.workspace.server_process import ServerState, free_port_after, port_owner, read_server, take_port

__all__ = ["Finding", "cluster_finding", "examine", "examine_database", "examine_studio", "slurm_finding"]

try:
    from ziggurat.store import schema
except (ImportError, MissingDependencyError):  # a package is missing, which is said elsewhere
    _REVISIONS: tuple[str, ...] = ()
else:
    _REVISIONS = schema.REVISIONS
try:
    from ziggurat.store.schema import DatabaseState, inspect_database
except (ImportError, MissingDependencyError):  # a package is missing, which is said elsewhere
    inspect_database = None
_PORT: Final = 5000
_LITTLE_MEMORY_BYTES: Final = 1 << 30
_ANSWER_WITHIN_S: Final = 5.0
_CLUSTER_WITHIN_S: Final = 120.0
_SLURM: Final = "slurm"
_SLURM_HELP: Final = "docs/how-to/use-slurm.md says what the studio's machine needs."
_CLUSTER_HELP: Final = "docs/how-to/use-several-machines.md says what a node needs."

_NOT_SHOWN: Final = ("all", "dev", "docs")
"""Extras that are sums of others, or for those who work on Ziggurat itself."""

_REINDEX: Final = "Put a backup in its place, or move it away and call: ziggurat reindex"
_REINDEX_OR_BACKUP: Final = "Then put a backup in its place, or call: ziggurat reindex"
_HELP: Final = "docs/how-to/use-postgresql.md says what an address looks like."


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        section: ``python``, ``packages``, ``extras``, ``backends``, ``plugins``, ``machine``, ``workspace`` or
            ``studio``.
        name: what it is.
        level: ``ok``, ``note`` (something optional is not there) or ``problem``.
        text: what was found.
        advice: how to mend it; empty where nothing has to be.
    """

    section: str
    name: str
    level: str
    text: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield what is found, section by section. Each backend is asked in a process of its own."""
    yield _python()
    yield from _packages()
    yield from _backends()
    yield from _plugins()
    yield from _machine()
    yield _workspace(settings.workspace, settings.disk_reserve_mib)
    if settings.ray_address:
        yield _ray(settings)
    if settings.executor == _SLURM:
        yield slurm_finding(SlurmCommands(worker_environment(settings)))
    yield from examine_studio(settings.workspace, database=settings.database.value, port=settings.port)


def _python() -> Finding:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("python", "Python", "ok", f"{version} at {sys.executable}")
    return Finding("python", "Python", "problem", version, "Use Python 3.11, 3.12 or 3.13.")


def _packages() -> Iterator[Finding]:
    extras: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("ziggurat") or []:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", requirement.strip())
        if name is None or name[0] == "ziggurat":
            continue
        if extra is None:
            yield _package(name[0], requirement.strip())
        elif extra[1] not in _NOT_SHOWN:
            extras.setdefault(extra[1], []).append(name[0])
    for extra_name, names in sorted(extras.items()):
        yield _extra(extra_name, names)


def _package(name: str, requirement: str) -> Finding:
    version = _version(name)
    if version:
        return Finding("packages", name, "ok", version)
    advice = f"Install it with: pip install '{requirement}'"
    return Finding("packages", name, "problem", "is needed and not installed", advice)


def _extra(name: str, packages: list[str]) -> Finding:
    missing = [package for package in packages if not _version(package)]
    if missing:
        advice = f"If you want it: pip install 'ziggurat[{name}]'"
        return Finding("extras", name, "note", f"not installed: {', '.join(missing)}", advice)
    return Finding("extras", name, "ok", ", ".join(f"{package} {_version(package)}" for package in packages))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _backends() -> Iterator[Finding]:
    for plugin in available("backends"):
        why_not = why_backend_does_not_work(plugin.name)
        owner = f"{plugin.distribution} {plugin.version}"
        if why_not:
            yield Finding("backends", plugin.name, "note", f"does not work ({owner})", why_not)
        else:
            yield Finding("backends", plugin.name, "ok", f"works ({owner})")


def _plugins() -> Iterator[Finding]:
    for group in GROUPS:
        for plugin in available(group):
            if not plugin.is_built_in:
                owner = f"{plugin.distribution} {plugin.version}"
                yield Finding("plugins", f"{group}/{plugin.name}", "ok", f"{plugin.target} ({owner})")


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "system", "ok", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("machine", "processor", "ok", f"{len(os.sched_getaffinity(0))} cores for this process")
    memory = psutil.virtual_memory()
    text = f"{as_bytes(memory.available)} of {as_bytes(memory.total)} free"
    if memory.available < _LITTLE_MEMORY_BYTES:
        yield Finding("machine", "memory", "problem", text, "End other programs; training needs 1 GB and more.")
    else:
        yield Finding("machine", "memory", "ok", text)
    yield from _devices()


def _devices() -> Iterator[Finding]:
    accelerators = Accelerators(os.environ)
    found = accelerators.read()
    for each in found:
        device = each.device
        name, text = f"GPU {device.index}", f"{device.name}, {as_bytes(device.free_bytes)} free"
        if device.usable:
            yield Finding("machine", name, "ok", f"{text} of {as_bytes(device.memory_bytes)}")
        else:
            yield Finding("machine", name, "problem", each.error, "Restart the driver or the machine.")
    if found:
        return
    if is_driver_loaded():
        text = f"there are some, and none can be used: {accelerators.why_none}"
        yield Finding("machine", "GPUs", "note", text, "Mend that; until then networks are trained on the processor.")
    else:
        yield Finding("machine", "GPUs", "ok", f"none ({accelerators.why_none}): the processor trains networks")


def _workspace(path: Path, disk_reserve_mib: int | None) -> Finding:
    there = next(each for each in (path, *path.resolve().parents) if each.is_dir())
    disk = shutil.disk_usage(there)
    free, least = disk.free, disk_reserve_bytes(disk.total, disk_reserve_mib)
    text = f"{path}, {as_bytes(free)} free"
    if not os.access(there, os.W_OK):
        advice = "Mend its rights, or choose another with --workspace or ZIGGURAT_WORKSPACE."
        return Finding("workspace", "folder", "problem", f"{path} cannot be written", advice)
    if free < least:
        advice = "Free some, or choose another disk with --workspace or ZIGGURAT_WORKSPACE."
        text = f"{text}, and {as_bytes(least)} are needed to start a job"
        return Finding("workspace", "folder", "problem", text, advice)
    return Finding("workspace", "folder", "ok", text)


def _ray(settings: Settings) -> Finding:
    """Return what the Ray cluster has; it is asked by a bridge of its own, which takes some seconds."""
    options = ExecutorOptions(
        command=(),
        environment=worker_environment(settings),
        resources=NodeResources,
        log_limit_bytes=0,
        workspace=settings.workspace,
        address=settings.ray_address,
    )
    try:
        executor = load("executors", "ray")(options)
    except MissingDependencyError as error:
        return Finding("machine", "Ray", "problem", f"not installed, and `ray_address` is set: {error}")
    try:
        executor.wait_for_nodes(_CLUSTER_WITHIN_S)
        return cluster_finding(executor.nodes(), executor.problem())
    finally:
        executor.close()


def slurm_finding(commands: SlurmCommands) -> Finding:
    """Return whether jobs can be sent to Slurm, and whether it says how they are."""
    missing = commands.missing()
    if missing:
        return Finding("machine", "Slurm", "problem", f"no {', '.join(missing)} on PATH", _SLURM_HELP)
    try:
        return Finding("machine", "Slurm", "ok", f"{commands.version()}, {len(commands.queue())} jobs of this user")
    except JobError as error:
        return Finding("machine", "Slurm", "problem", str(error), _SLURM_HELP)


def cluster_finding(nodes: Sequence[NodeResources], problem: str) -> Finding:
    """Return what is said of a cluster.

    Args:
        nodes: those on which jobs run.
        problem: what is wrong with others, or with the whole; empty if nothing is.
    """
    gpus = sum(len(node.devices) for node in nodes)
    counts = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}, {gpus} GPU{'' if gpus == 1 else 's'}"
    differing = []
    for name in sorted({name for node in nodes for name in node.versions}):
        found = {node.versions.get(name, "none"): node.name for node in reversed(nodes)}
        if len(found) > 1:
            differing.append(f"{name} " + ", ".join(f"{each} on {found[each]}" for each in sorted(found)))
    if problem or not nodes:
        return Finding(
            "machine", "Ray", "problem", f"{counts}; {problem or 'no node has CPUs to give away'}", _CLUSTER_HELP
        )
    if differing:
        text = f"{counts}, versions differ: {'; '.join(differing)}"
        return Finding(
            "machine", "Ray", "note", text, "Install the same versions on all nodes: results depend on them."
        )
    return Finding("machine", "Ray", "ok", f"{counts}, versions agree")


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


def examine_database(url: str) -> Finding:
    """Return whether the database answers, its version, and what its schema needs.

    Args:
        url: of a PostgreSQL database.
    """
    if inspect_database is None:
        return _database_problem(
            "cannot be looked at without the studio", "Install it with: pip install 'ziggurat[studio]'"
        )
    try:
        return _judged_database(inspect_database(url))
    except MissingDependencyError as error:
        return _database_problem(str(error.rule), error.advice)
    except (SettingsError, UnknownNameError) as error:
        return _database_problem(str(error), _HELP)
    except StorageError as error:
        return _database_problem(f"{error.rule} {error.received or ''}".strip(), error.advice)


def _judged_database(found: DatabaseState) -> Finding:
    place = f"{found.place}, PostgreSQL {found.version}"
    if found.encoding != "UTF8":
        text = f"{place}: its encoding must be UTF8, and is {found.encoding}"
        return _database_problem(text, "Make another one: createdb --encoding UTF8 --template template0 NAME")
    if found.is_foreign:
        return _database_problem(f"{place}, holds foreign tables", "Name an empty database, or the studio's own.")
    if not found.revision:
        return _database_finding("ok", f"{place}, empty; the first `ziggurat up` makes the tables")
    if found.is_newer:
        text = f"{place}, was made by a newer release (revision {found.revision}; this one knows {found.newest})"
        return _database_problem(text, "Install that release, or put back a backup of before.")
    if found.revision != found.newest:
        text = f"{place}, revision {found.revision}; this release needs {found.newest}, and makes no backup of it"
        return _database_finding("note", text, "Back it up with `pg_dump`, then call: ziggurat up --backup-made")
    return _database_finding("ok", f"{place}, revision {found.revision}, answers")


def _database_problem(text: str, advice: str) -> Finding:
    return _database_finding("problem", text, advice)


def _database_finding(level: str, text: str, advice: str = "") -> Finding:
    return Finding("studio", "database", level, text, advice)
