"""Background server: starts the process, redirects its output, waits until it answers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import JobError
from ziggurat.settings import Settings, child_environment
from ziggurat.workspace.server_state import ServerState, running_server

__all__ = ["start_detached_server"]

_COMMAND: Final = (sys.executable, "-m", "ziggurat", "up", "--no-open")
_READY_WITHIN_S: Final = 120.0


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
    """Start a process in a session of its own, which nobody here waits for; return its number."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("Error: ") if lines else "nothing that it said"
