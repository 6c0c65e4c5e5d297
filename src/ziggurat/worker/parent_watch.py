"""Whether the process that a worker shall end with is still there."""

from __future__ import annotations

import os

import psutil

__all__ = ["ParentWatch"]


class ParentWatch:
    """Tells whether the process that started this one, or the shim in between, is gone.

    It asks the system instead of taking a parent-death signal, because that signal follows the *thread* that started
    the child: it would end a worker whenever a short-lived thread of the parent ended.

    Args:
        parent: process number of the parent, as the parent itself gave it; the parent may be dead already.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def is_gone(self) -> bool:
        """Return True once the parent has died."""
        above = os.getppid()
        return self._parent not in (above, _parent_of(above))


def _parent_of(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None
