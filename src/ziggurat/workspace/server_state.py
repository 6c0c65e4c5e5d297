"""Server of a workspace: ``server.json`` holds its address, ``studio.lock`` allows only one."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from ziggurat.atomic import atomic_write_text
from ziggurat.entities.processes import birth_of, is_alive
from ziggurat.errors import JobError, StorageError

__all__ = [
    "ServerState",
    "WorkspaceLock",
    "end_server",
    "forget_server",
    "make_server_state",
    "read_server",
    "refuse_second",
    "running_server",
    "write_server",
]

_FILE: Final = "server.json"
_LOCK: Final = "studio.lock"
_PATIENCE_S: Final = 1.0
_END_WITHIN_S: Final = 30.0


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
        raise JobError(f"A studio must serve {workspace} to be ended.", advice="Start one with: ziggurat up")
    if not state.is_here:
        raise JobError(
            "A studio is ended on its own machine.",
            received=f"this is {socket.gethostname()}, and the studio runs on {state.host}",
            advice=f"Call `ziggurat down` there. If that machine is gone, remove {workspace / _FILE}.",
        )
    try:
        os.kill(state.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise JobError("A studio is ended by whoever started it.", received=f"process {state.pid}") from None
    waited_s = 0.0
    while state.is_alive:
        if waited_s >= time_limit_s:
            raise JobError(
                "The studio must end when it is asked to.",
                received=f"process {state.pid} is still there after {time_limit_s:.0f} s",
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
                f"A studio locks its workspace by the file {path}.",
                received=f"{error.strerror} (errno {error.errno})",
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
        f"One studio at a time serves a workspace: {workspace}.",
        received=received,
        advice="Use that one, end it with `ziggurat down`, or choose another --workspace.",
        details={} if state is None else {"pid": state.pid, "address": state.address},
    )
