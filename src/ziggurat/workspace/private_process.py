"""Protection of this process from other processes of the same user."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

__all__ = ["make_process_private"]

_PR_SET_DUMPABLE: Final = 4


def make_process_private() -> None:
    """Keep programs of the same user, such as jobs, from reading memory and environment of this process in ``/proc``.

    It leaves no core files afterwards, and only root can attach a debugger. Elsewhere than on Linux nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
