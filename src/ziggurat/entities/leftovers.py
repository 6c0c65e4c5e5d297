"""Temporary folders that name the process which made them, so that those of a killed process can be removed."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ziggurat.entities.processes import birth_of, is_alive

__all__ = ["owner_tag", "remove_leftovers", "temporary_folder"]

TEMPORARY: Final = "ziggurat-"
"""Begins the names in the temporary folder of the system."""

_TAG: Final = re.compile(r"-([0-9a-f]{8})-(\d+)-(\d+)-[^-]+\Z")
_UNTAGGED: Final = (".partial-", "ziggurat-video-", "ziggurat-frames-")
"""Begin the names that earlier releases gave, without the process."""

_TICKS: Final = 100
_OLD_S: Final = 24 * 3600


def owner_tag() -> str:
    """Return what names this process in the name of a folder: machine, number, and when it began."""
    return f"{_machine()}-{os.getpid()}-{round((birth_of(os.getpid()) or 0) * _TICKS)}"


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Give a folder of this process, which is deleted at the end, or by ``remove_leftovers`` after a kill.

    Args:
        purpose: one word, part of its name.
    """
    prefix = f"{TEMPORARY}{purpose}-{owner_tag()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_leftovers(folder: Path, prefix: str = TEMPORARY) -> None:
    """Delete the folders of processes that have ended.

    Args:
        folder: Their parent folder; those of other users and other machines in it stay.
        prefix: of their names; those of earlier releases, which name no process, are deleted
            a day after their last change.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and _is_left(folder / name):
                shutil.rmtree(folder / name, ignore_errors=True)


def _is_left(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    tag = _TAG.search(path.name)
    if tag is None:
        return path.name.startswith(_UNTAGGED) and time.time() - status.st_mtime > _OLD_S
    return tag[1] == _machine() and not is_alive(int(tag[2]), int(tag[3]) / _TICKS)


def _machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"
