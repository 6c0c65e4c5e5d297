"""Processes of this machine: workers behind a shim, process groups with a pipe, and who is alive.

A worker starts behind a parent process of its own, the shim: see ``ziggurat.entities.shim_process``.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import psutil

from ziggurat.errors import StorageError
from ziggurat.settings import OUTPUT_IS_LOG_VARIABLE

__all__ = [
    "LOG_LIMIT_BYTES",
    "ProcessGroup",
    "began_at",
    "birth_of",
    "find_worker",
    "is_alive",
    "is_shim",
    "kill_descendants",
    "kill_group",
    "kill_process",
    "last_line",
    "processor_s",
    "shim_of",
    "start_here",
    "start_worker",
]


LOG_LIMIT_BYTES: Final = 64 << 20
"""How large a log may become, where nothing else is set."""

_SCRIPT: Final = Path(__file__).with_name("shim_process.py")
# Isolated and without site packages: it starts fast, and no module of a user can take the place of one that it imports.
_SHIM: Final = (sys.executable, "-I", "-S", str(_SCRIPT))
# A child inherits ignored signals: a worker of a server that ignores some must still be able to end by them.
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
            f"The worker could not be started by {command[0]}, with its output in {log}: {error.strerror} "
            f"(errno {error.errno}).",
            advice="Free space on the disk, fix the folder's permissions, or end other programs; then resume the job.",
        ) from error


def start_here(
    command: Sequence[str],
    environment: Mapping[str, str] | None,
    output: IO[Any] | int | None,
    *,
    question: IO[Any] | None = None,
    errors: IO[Any] | int | None = None,
) -> tuple[int, subprocess.Popen[bytes]]:
    """Start a worker that says what it says where this process does; return its process number, and its shim.

    Both lead process groups of their own. The shim ends as the worker ended, once nothing is left that it started.

    Args:
        command: what starts it.
        environment: of the worker; that of this process if None.
        output: where its standard output goes; to this process's own where it is not given.
        question: its standard input; empty if None.
        errors: where its standard error goes; to this process's own if None.

    Raises:
        OSError: where no process can be made.
    """
    answer, report = os.pipe()
    with open(answer, "rb", buffering=0):
        try:
            shim = subprocess.Popen(
                [*_SHIM, str(report), "", "0", *command],
                stdin=subprocess.DEVNULL if question is None else question,
                stdout=output,
                stderr=errors,
                env=None if environment is None else dict(environment),
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


def _is_shim(process: psutil.Process) -> bool:
    try:
        return is_shim(process.cmdline())
    except psutil.Error:
        return False


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


_LOG_BYTES: Final = 1 << 20
_LOOK_S: Final = 0.02


class ProcessGroup:
    """A process that messages go to and come from; its other output goes to a file. Any thread may call any method.

    It has a shim as workers have, which ends all that it started.

    Args:
        command: starts it, all arguments included.
        environment: of the process.
        log: file that its standard error is appended to; begun anew where it has grown beyond 1 MiB.

    Raises:
        StorageError: where the log cannot be written or no process can be made.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._lock = threading.Lock()
        try:
            with _open_log(log) as errors, ExitStack() as opened:
                (read_in, write_in), (read_out, write_out) = os.pipe(), os.pipe()
                question = opened.enter_context(open(read_in, "rb", buffering=0))
                output = opened.enter_context(open(write_out, "wb", buffering=0))
                self.messages_in: IO[bytes] = open(write_in, "wb")  # noqa: SIM115 - closed by its users
                self.messages_out: IO[bytes] = open(read_out, "rb")  # noqa: SIM115 - likewise
                try:
                    self.pid, self._shim = start_here(command, environment, output, question=question, errors=errors)
                except BaseException:
                    self.messages_in.close()
                    self.messages_out.close()
                    raise
            self._birth = birth_of(self.pid)
        except OSError as error:
            raise StorageError(
                f"A process could not be started, its output in {log}: {error.strerror} (errno {error.errno}).",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error
        os.set_blocking(self.messages_in.fileno(), False)

    def has_exited(self) -> bool:
        """Return whether the process has ended; what it started may still be there."""
        with self._lock:
            return self._shim.poll() is not None or self._birth is None or not is_alive(self.pid, self._birth)

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, as long as its number is surely its own."""
        with self._lock:
            if self._shim.poll() is None and self._birth is not None and birth_of(self.pid) == self._birth:
                try:
                    os.killpg(self.pid, number)
                except (ProcessLookupError, PermissionError):
                    pass

    def bury(self, within_s: float) -> int:
        """Wait for the end of the process, kill the group, and return the exit code; negative for a signal.

        Args:
            within_s: how long it may take to end by itself.
        """
        last = time.monotonic() + within_s
        while not self.has_exited() and time.monotonic() < last:
            time.sleep(_LOOK_S)
        self.signal(signal.SIGKILL)
        with self._lock:
            return self._shim.wait()


def last_line(log: Path) -> str:
    """Return the last line of what a process wrote into its log, at most 300 characters; empty where there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""


def _open_log(log: Path) -> IO[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    is_long = log.exists() and log.stat().st_size > _LOG_BYTES
    return log.open("wb" if is_long else "ab")


def birth_of(pid: int) -> float | None:
    """Return what tells a process from a later one with the same number; None where there is none with that number.

    On Linux it is the time since the machine started, which does not change when the clock is set.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program stands in parentheses and may hold anything.
            return float(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        pass
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def is_alive(pid: int, birth: float) -> bool:
    """Return whether a process is alive and is the one that had that birth."""
    return birth_of(pid) == birth and not _is_zombie(pid)


def processor_s(pid: int) -> float | None:
    """Return the processor time that a process and its ended children used; None where there is no such process."""
    try:
        return sum(psutil.Process(pid).cpu_times()[:4])
    except psutil.Error:
        return None


def began_at(pid: int) -> float | None:
    """Return when a process began, in seconds since 1970; None if it has ended, even if it was not reaped yet."""
    try:
        return None if _is_zombie(pid) else psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0.0


def find_worker(folder: Path, command: Sequence[str]) -> int | None:
    """Return the process that a command started for a folder, by the words it was started with; None where none is.

    Args:
        folder: the last word.
        command: the words in front of it; options may stand in between.
    """
    words, last = list(command[1:]), os.path.realpath(folder)
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if process.info["status"] == psutil.STATUS_ZOMBIE or len(line) < len(words) + 2:
            continue
        if line[1 : 1 + len(words)] == words and os.path.realpath(line[-1]) == last:
            return process.pid
    return None


def kill_group(pid: int, birth: float) -> None:
    """Kill a worker and what it started; where the worker has ended, what it left behind in its process group.

    A worker leads its group, so the group's number is its own. While anything of the group is left, no new process gets
    that number; where a process of another birth has it, the group is gone.
    """
    try:
        there = birth_of(pid)
        if there is not None and there != birth:
            return
        if there is not None and os.getpgid(pid) != pid:
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def shim_of(pid: int) -> int | None:
    """Return the shim that a worker was started by, the upper one of two; None where it was started without one."""
    shim = None
    try:
        parent = psutil.Process(pid).parent()
        while parent is not None and is_shim(parent.cmdline()):
            shim, parent = parent.pid, parent.parent()
    except psutil.Error:
        pass
    return shim


def kill_descendants(pid: int, birth: float) -> bool:
    """Kill all processes below a process, in whatever session they are; return whether there was one.

    The lower one of two shims is killed if nothing else is left: it still writes down the last output of the worker.
    """
    if not is_alive(pid, birth):
        return False
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return False
    alive = [each for each in found if not _is_zombie(each.pid)]
    alive = [each for each in alive if not _is_shim(each)] or alive
    for process in alive:
        try:
            process.kill()  # it looks first whether the number is still that of the same process
        except psutil.Error:
            pass
    return bool(alive)


def kill_process(pid: int, birth: float) -> None:
    """Kill one process, if it is still the one that had that birth."""
    if is_alive(pid, birth):
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False
