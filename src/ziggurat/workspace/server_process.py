"""Server process of a workspace: its port, its state in ``server.json``, its lock, and a start in the background."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import psutil

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.entities.processes import birth_of, is_alive
from ziggurat.errors import JobError, StorageError, UsageError
from ziggurat.settings import Settings, child_environment

__all__ = [
    "ServerState",
    "WorkspaceLock",
    "address_of",
    "end_server",
    "forget_server",
    "free_port_after",
    "make_process_private",
    "make_server_state",
    "port_owner",
    "read_server",
    "refuse_second",
    "running_server",
    "take_port",
    "write_server",
]

_FILE: Final = "server.json"
_LOCK: Final = "studio.lock"
_COMMAND: Final = (sys.executable, "-m", "ziggurat", "up", "--no-open")
_PATIENCE_S: Final = 1.0
_END_WITHIN_S: Final = 30.0
_READY_WITHIN_S: Final = 120.0
_PORTS_TRIED: Final = 100
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_PR_SET_DUMPABLE: Final = 4


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """A process that serves a workspace.

    Args:
        pid: its number.
        host: its machine.
        birth: what tells the process from a later one with the same number.
        started: when it began to serve, seconds since 1970.
        address: where a browser finds it, such as ``http://127.0.0.1:5000/``.
        version: of Ziggurat.
        database: place of its store, without a password.
        workspace: absolute path of the folder that it serves; empty where release 0.1 wrote the file.
        remarks: what people should know of the workspace, one sentence each.
    """

    pid: int
    host: str
    birth: float
    started: float
    address: str
    version: str
    database: str = ""
    workspace: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether it is of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether the process lives; one of another machine is taken to."""
        return not self.is_here or is_alive(self.pid, self.birth)


def make_server_state(
    address: str,
    version: str,
    *,
    now: float,
    database: str = "",
    workspace: Path | None = None,
    remarks: Sequence[str] = (),
) -> ServerState:
    """Return the state of this process; see ``ServerState``."""
    pid = os.getpid()
    return ServerState(
        pid=pid,
        host=socket.gethostname(),
        birth=birth_of(pid) or 0.0,
        started=now,
        address=address,
        version=version,
        database=database,
        workspace="" if workspace is None else os.path.abspath(workspace),
        remarks=tuple(remarks),
    )


def write_server(workspace: Path, state: ServerState) -> None:
    """Write ``server.json``: readers see the old one or the new one.

    Raises:
        StorageError: where it cannot be written.
    """
    atomic_write_text(workspace / _FILE, json.dumps(asdict(state), indent=2) + "\n", "The place of the server")


def read_server(workspace: Path) -> ServerState | None:
    """Return what ``server.json`` says, also of a process that is gone; None where there is none that can be read.

    One that was copied here with a workspace is of the original's server, and counts for nothing.
    """
    try:
        content = json.loads((workspace / _FILE).read_text(encoding="utf-8"))
        state = ServerState(**{**content, "remarks": tuple(content.get("remarks", ()))})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    is_sound = type(state.pid) is int and state.pid > 0 and isinstance(state.birth, int | float)
    return state if is_sound and isinstance(state.address, str) and not _is_copied(state, workspace) else None


def _is_copied(state: ServerState, workspace: Path) -> bool:
    try:
        return bool(state.workspace) and not os.path.samefile(state.workspace, workspace)
    except (OSError, TypeError, ValueError):  # where it was written is no folder any more: the workspace was moved
        return False


def running_server(workspace: Path) -> ServerState | None:
    """Return the server of a workspace; None where none runs, whatever a killed one left behind."""
    state = read_server(workspace)
    return state if state is not None and state.is_alive else None


def forget_server(workspace: Path, pid: int | None = None) -> None:
    """Remove ``server.json`` where it is of this process, or of the one that is named."""
    state = read_server(workspace)
    if state is not None and state.pid == (os.getpid() if pid is None else pid):
        (workspace / _FILE).unlink(missing_ok=True)


def refuse_second(workspace: Path) -> None:
    """Raise where a server runs in a workspace already, before anything is done; ``WorkspaceLock`` makes it sure.

    Raises:
        JobError: it names the process and its address.
    """
    if running_server(workspace) is not None:
        raise _is_served(workspace)


def end_server(
    workspace: Path, *, time_limit_s: float = _END_WITHIN_S, sleep: Callable[[float], None] = time.sleep
) -> ServerState:
    """Ask the server of a workspace to end, wait until it has, and return what it was; workers go on.

    Args:
        workspace: that it serves.
        time_limit_s: how long is waited.
        sleep: waits so many seconds.

    Raises:
        JobError: where none runs, it is of another machine or user, or it does not end in time.
    """
    state = running_server(workspace)
    if state is None:
        raise JobError(f"No studio serves {workspace}, so there is none to end.", advice="Start one with: ziggurat up")
    if not state.is_here:
        raise JobError(
            f"The studio runs on {state.host}, and this machine is {socket.gethostname()}.",
            advice=f"Call `ziggurat down` there. If that machine is gone, remove {workspace / _FILE}.",
        )
    try:
        os.kill(state.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise JobError(
            f"Process {state.pid} is a studio of another user, and only the user who started it can stop it."
        ) from None
    waited_s = 0.0
    while state.is_alive:
        if waited_s >= time_limit_s:
            raise JobError(
                f"The studio did not end when it was asked to: process {state.pid} is still there after "
                f"{time_limit_s:.0f} s.",
                advice=f"Use `kill -9 {state.pid}`: nothing is lost, and workers go on.",
            )
        sleep(0.1)
        waited_s += 0.1
    forget_server(workspace, state.pid)
    return state


class WorkspaceLock:
    """The right to serve a workspace: one process has it, and loses it by ending, however that happens.

    Args:
        workspace: the folder; it is made.
        sleep: waits so many seconds.

    Raises:
        JobError: where another process has it; the message names it.
        StorageError: where the folder cannot be written.
    """

    def __init__(self, workspace: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        path = workspace / _LOCK
        try:
            workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = path.open("ab")  # the descriptor is not handed on to workers
        except OSError as error:
            raise StorageError(
                f"The file {path}, by which a studio locks its workspace, cannot be used: {error.strerror} "
                f"(errno {error.errno}).",
                advice="Mend the rights of the folder, or choose another --workspace.",
            ) from error
        waited_s = 0.0
        while not self._take():
            # A server that is ending gives it up in a moment.
            if waited_s >= _PATIENCE_S:
                self._file.close()
                raise _is_served(workspace)
            sleep(0.1)
            waited_s += 0.1

    def close(self) -> None:
        """Give it up; closing twice does nothing."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _take(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _is_served(workspace: Path) -> JobError:
    state = read_server(workspace)
    received = "a process that has not said where it is"
    if state is not None:
        received = f"process {state.pid} on {state.host} at {state.address}"
    return JobError(
        f"Another studio serves {workspace} already.",
        received=received,
        advice="Use that one, end it with `ziggurat down`, or choose another --workspace.",
        details={} if state is None else {"pid": state.pid, "address": state.address},
    )


def start_detached_server(
    settings: Settings,
    words: Sequence[str],
    *,
    ready_within_s: float = _READY_WITHIN_S,
    sleep: Callable[[float], None] = time.sleep,
) -> ServerState:
    """Start a server in a session of its own and return its state once it answers.

    Args:
        settings: of this process; the server gets the same.
        words: further words of ``ziggurat up``.
        ready_within_s: how long is waited; then it is ended.
        sleep: waits so many seconds.

    Raises:
        JobError: where it ends or does not answer; its last words are shown.
        StorageError: where its log cannot be written.
    """
    log = settings.workspace / "logs" / "up.log"
    with storage_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        pid = _spawn([*_COMMAND, *words], log, child_environment(settings, with_secrets=True))
    last, has_ended = time.monotonic() + ready_within_s, False
    while not has_ended and time.monotonic() < last:
        state = running_server(settings.workspace)
        if state is not None and state.pid == pid:
            return state
        sleep(0.1)
        # From the system: an ended child without a wait() still has its process number.
        has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
    if not has_ended:
        os.kill(pid, signal.SIGTERM)
    within = "before it answered" if has_ended else f"without an answer after {ready_within_s:.0f} s"
    raise JobError(
        f"The studio did not start: it ended {within}.",
        received=f"as the last line of its log: {_last_words(log)}",
        advice=f"See {log} for the rest.",
    )


def _spawn(command: list[str], log: Path, environment: Mapping[str, str]) -> int:
    """Start a process in a session of its own, without waiting for it; return its number."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ") if lines else "nothing that it said"


def take_port(host: str, port: int) -> socket.socket:
    """Return a socket that has the port; no other process gets it until it is closed.

    Args:
        host: name or address of this machine; ``0.0.0.0``, ``::`` or nothing for all of its addresses.
        port: its number; 0 for any that is free.

    Raises:
        UsageError: where the port is taken, not allowed, or the host is not of this machine.
    """
    family, address = _resolved(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A server that has just ended leaves the port in a state that only this option passes over.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)  # two that bind at once: one of them learns it here
    except OSError as error:
        listener.close()
        raise _refused(host, port, error) from None
    return listener


def address_of(listener: socket.socket, host: str, prefix: str = "") -> str:
    """Return the address by which a browser on this machine finds the server, such as ``http://127.0.0.1:5000/``."""
    name = _WILDCARDS.get(host, host)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{listener.getsockname()[1]}{prefix}/"


def free_port_after(host: str, port: int) -> int | None:
    """Return the next port that is free now; None where none of the next hundred is."""
    for candidate in range(port + 1, min(port + 1 + _PORTS_TRIED, 1 << 16)):
        try:
            family, address = _resolved(host, candidate)
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError:
            continue
        return candidate
    return None


def port_owner(port: int) -> str:
    """Return who listens at a port, as far as this user may know: ``process 12 (python)``."""
    try:
        connections = psutil.net_connections("tcp")
        pids = [each.pid for each in connections if each.status == "LISTEN" and each.laddr and each.laddr.port == port]
        pid = next((pid for pid in pids if pid), None)
        return "a process of another user" if pid is None else f"process {pid} ({psutil.Process(pid).name()})"
    except (psutil.Error, OSError, AttributeError):
        return "another process"


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if not 0 <= port < 1 << 16:
        raise UsageError(f"{port} is not a port: these are from 0 to 65535.")
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise _not_here(host, error) from None
    return found[0][0], found[0][4]


def _refused(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        free = free_port_after(host, port)
        advice = f"Use a free one: --port {free}." if free else "Use another --port."
        return UsageError(f"Port {port} is not free: it is taken by {port_owner(port)}.", advice=advice)
    if error.errno == errno.EACCES:
        return UsageError(
            f"You may not use port {port}: the system reserves ports below 1024.",
            advice="Use another one, such as --port 5000.",
        )
    return _not_here(host, error)


def _not_here(host: str, error: Exception) -> UsageError:
    return UsageError(
        f"{host!r} is not a name or address of this machine: {getattr(error, 'strerror', None) or error}.",
        advice="Leave --host out for this machine alone, or use 0.0.0.0 for all of its addresses.",
    )


def make_process_private() -> None:
    """Keep programs of the same user, such as jobs, from reading memory and environment of this process in ``/proc``.

    It leaves no core files afterwards, and only root can attach a debugger. Elsewhere than on Linux nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
