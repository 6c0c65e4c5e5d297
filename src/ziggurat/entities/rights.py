"""Rights of new files: for the owner alone, unless the folder of everything is shared with its group."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["folder_mode", "private_files", "private_umask"]

_OWNER_ONLY: Final = 0o077


def private_umask(folder: Path) -> int:
    """Return the umask for what is made in a folder.

    It is 0o077, for the owner alone. A folder with the setgid bit (``chmod g+s``) is shared with its group: the group
    gets the same rights in it as it has on the folder itself. The system hands the bit on to new folders within.

    Args:
        folder: such as a workspace or a job folder; it need not be there.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return _OWNER_ONLY
    return _OWNER_ONLY & ~(mode & stat.S_IRWXG) if mode & stat.S_ISGID else _OWNER_ONLY


def folder_mode(parent: Path) -> int:
    """Return the mode for a new folder in a folder; see ``private_umask``."""
    return 0o777 & ~private_umask(parent)


@contextmanager
def private_files(folder: Path) -> Iterator[None]:
    """Make all files of this process, and of those that it starts, with the rights of ``private_umask``.

    The umask belongs to the whole process: call it where the process begins its work, and not in a thread.
    """
    before = os.umask(private_umask(folder))
    try:
        yield
    finally:
        os.umask(before)
