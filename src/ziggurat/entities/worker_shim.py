"""Start of a worker behind a parent process of its own, the shim: see ``ziggurat.entities.shim_process``."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.errors import StorageError
from ziggurat.settings import OUTPUT_IS_LOG_VARIABLE

__all__ = ["LOG_LIMIT_BYTES", "is_shim", "start_here", "start_worker"]

LOG_LIMIT_BYTES: Final = 64 << 20
"""How large a log may become, where nothing else is set."""

_SCRIPT: Final = Path(__file__).with_name("shim_process.py")
_SHIM: Final = (sys.executable, "-I", "-S", str(_SCRIPT))
_RESET: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)
_STARTED_WITHIN_S: Final = 50.0


def start_worker(
    command: Sequence[str], log: Path, environment: Mapping[str, str], *, log_limit_bytes: int = LOG_LIMIT_BYTES
) -> tuple[int, int]:
    """Start a worker that outlives this process; return its process number, and that of its shim, a child of this one.

    Both lead sessions of their own. The shim ends as the worker ended, once nothing is left that the worker started.

    Args:
        command: what starts it.
        log: file that its output is appended to.
        environment: of the worker.
        log_limit_bytes: how large that file may become; beyond, its beginning and its newest end are kept.

    Raises:
        StorageError: where the log cannot be written, or no process can be made.
    """
    answer, report = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, report, 1),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
    ]
    words = [*_SHIM, "1", str(log), str(log_limit_bytes), *command]
    variables = {**environment, OUTPUT_IS_LOG_VARIABLE: "1"}
    try:
        with open(answer, "rb", buffering=0):
            try:
                shim = os.posix_spawn(
                    words[0], words, variables, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_RESET
                )
            finally:
                os.close(report)
            try:
                return _worker(answer), shim
            except OSError:
                os.kill(shim, signal.SIGKILL)
                os.waitpid(shim, 0)
                raise
    except OSError as error:
        raise StorageError(
            f"A worker is started by {command[0]}, with its output in {log}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk, fix the folder's permissions, or end other programs; then resume the job.",
        ) from error


def start_here(
    command: Sequence[str], environment: Mapping[str, str], output: IO[Any] | None
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a worker that says what it says where this process does; return its process number, and its shim.

    Both lead process groups of their own. The shim ends as the worker ended, once nothing is left that it started.

    Args:
        command: what starts it.
        environment: of the worker.
        output: where its standard output goes; to this process's own where it is not given.

    Raises:
        OSError: where no process can be made.
    """
    answer, report = os.pipe()
    with open(answer, "rb", buffering=0):
        try:
            shim = subprocess.Popen(
                [*_SHIM, str(report), "", "0", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                env=dict(environment),
                process_group=0,
                pass_fds=(report,),
            )
        finally:
            os.close(report)
        try:
            return _worker(answer), shim
        except OSError:
            shim.kill()
            shim.wait()
            raise


def is_shim(command_line: Sequence[str]) -> bool:
    """Return whether a process with this command line is the shim of a worker, perhaps of another installation."""
    return any(Path(word).parts[-3:] == _SCRIPT.parts[-3:] for word in command_line[1:5])


def _worker(answer: int) -> int:
    """Return the process number that a shim reports; raise the error that it reports instead."""
    said = b""
    while not said.endswith(b"\n") and select.select([answer], [], [], _STARTED_WITHIN_S)[0]:
        part = os.read(answer, 64)
        if not part:
            break
        said += part
    words = said.split()
    if len(words) == 1:
        return int(words[0])
    number = int(words[1]) if words else 0
    raise OSError(number, os.strerror(number) if number else "its parent process did not answer")
