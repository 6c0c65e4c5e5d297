"""Watch of the process that started this one, through the shims that may stand in between."""

from __future__ import annotations

import os
from typing import Final

import psutil

__all__ = ["ParentWatch"]

_SHIMS: Final = 2
"""Processes that ``ziggurat.entities.shim_process`` puts between a worker and the process that started it."""


class ParentWatch:
    """Tells whether the process that started this one, perhaps by shims in between, is gone.

    It asks the system instead of taking a parent-death signal, because that signal follows the *thread* that started
    the child: it would end a worker whenever a short-lived thread of the parent ended.

    Args:
        parent: process number of the parent, as the parent itself gave it; the parent may be dead already.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def is_gone(self) -> bool:
        """Return True once the parent has died."""
        above: int | None = os.getppid()
        for _ in range(_SHIMS):
            if above is None or above == self._parent:
                break
            above = _parent_of(above)
        return above != self._parent


def _parent_of(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None
