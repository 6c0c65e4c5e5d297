"""Process information from the system: whether a process is alive and the same, and which one works in a folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil

from ziggurat.entities.worker_shim import is_shim

__all__ = [
    "began_at",
    "birth_of",
    "find_worker",
    "is_alive",
    "kill_descendants",
    "kill_group",
    "kill_process",
    "shim_of",
]


def birth_of(pid: int) -> float | None:
    """Return what tells a process from a later one with the same number; None where there is none with that number.

    On Linux it is the time since the machine started, which stays the same where somebody sets the clock.
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


def began_at(pid: int) -> float | None:
    """Return when a process began, in seconds since 1970; None where it has ended, even if nobody took note yet."""
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
    """Return the shim that a worker was started by; None where it was started without one."""
    try:
        parent = psutil.Process(pid).parent()
        return parent.pid if parent is not None and is_shim(parent.cmdline()) else None
    except psutil.Error:
        return None


def kill_descendants(pid: int, birth: float) -> bool:
    """Kill all processes below a process, in whatever session they are; return whether there was one."""
    if not is_alive(pid, birth):
        return False
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return False
    alive = [each for each in found if not _is_zombie(each.pid)]
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
