"""Disk usage of each part of the workspace, measured within a few seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["DiskPart", "disk_use"]

_WITHIN_S: Final = 5.0
_PARTS: Final = {
    "datasets": "Datasets",
    "jobs": "Trainings and evaluations",
    "uploads": "Uploads that wait",
    "temporary": "Graphs that somebody looked at",
    ".trash": "Deleted, removed soon",
    "logs": "Logs",
}


@dataclass(frozen=True, kw_only=True)
class DiskPart:
    """A part of the workspace.

    Args:
        folder: its name there.
        title: what is in it.
        size_bytes: of its files.
        files: how many they are.
        is_whole: whether all were looked at; if not, it is at least so much.
    """

    folder: str
    title: str
    size_bytes: int
    files: int
    is_whole: bool


def disk_use(
    root: Path, *, within_s: float = _WITHIN_S, monotonic: Callable[[], float] = time.monotonic
) -> list[DiskPart]:
    """Return the parts of a workspace that are there.

    Args:
        root: folder of the workspace.
        within_s: how long to look at most; what is not reached by then is not counted.
        monotonic: seconds of a clock that never goes back.
    """
    last = monotonic() + within_s
    found = []
    for folder, title in _PARTS.items():
        if (root / folder).is_dir():
            size_bytes, files, is_whole = _measured(root / folder, lambda: monotonic() <= last)
            found.append(DiskPart(folder=folder, title=title, size_bytes=size_bytes, files=files, is_whole=is_whole))
    return found


def _measured(folder: Path, may_go_on: Callable[[], bool]) -> tuple[int, int, bool]:
    size_bytes, files, waiting = 0, 0, [str(folder)]
    while waiting:
        if not may_go_on():
            return size_bytes, files, False
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        size_bytes += entry.stat(follow_symlinks=False).st_size
                        files += 1
        except OSError:  # deleted meanwhile, or not ours to look at
            continue
    return size_bytes, files, True
