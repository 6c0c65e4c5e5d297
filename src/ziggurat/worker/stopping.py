"""Owns how a worker is asked to end: signals, a request file, a dead parent."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["ParentWatch", "StopSignals", "stop_requested"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopSignals:
    """Turns SIGTERM, SIGINT and SIGHUP into a request to stop; the same signal again ends the process at once.

    Made in the main thread, as early as possible: a signal that comes before there is a trainer is kept.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._listener: Callable[[str], None] | None = None
        for number in _SIGNALS:
            signal.signal(number, self._received)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Tell ``listener`` the reason, now if a signal came already."""
        self._listener = listener
        if self.reason is not None:
            listener(self.reason)

    def restore(self) -> None:
        """Give the signals back to the system's default action."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if self.reason is None:
            self.reason = f"received {signal.Signals(number).name}"
        if self._listener is not None:
            self._listener(self.reason)


class ParentWatch:
    """Tells whether the process that started this one is gone.

    It asks the system instead of taking a parent-death signal, because that signal follows the *thread* that started
    the child: it would end a worker whenever a short-lived thread of the parent ended.

    Args:
        parent: process number of the parent, as the parent itself gave it; the parent may be dead already.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def is_gone(self) -> bool:
        """Return True once the parent has died."""
        return os.getppid() != self._parent


def stop_requested(path: Path) -> str | None:
    """Return the reason of a stop request, or None where there is none."""
    if not path.exists():
        return None
    try:
        return path.read_text(errors="replace").strip() or "asked to stop"
    except OSError:
        return "asked to stop"
