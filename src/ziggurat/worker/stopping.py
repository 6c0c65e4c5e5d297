"""Requests to a worker to end: signals, a file, and the death of the process that it shall end with."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from ziggurat.entities.parent_watch import ParentWatch

__all__ = ["StopRequest", "StopSignals", "end_with", "stop_requested"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NUDGE: Final = signal.SIGUSR1
_WATCH_S: Final = 0.5


class StopRequest:
    """Stop request of a worker, and the first source of it. Any thread and any signal handler may request it.

    It is there before there is a trainer: a request that comes early is kept.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.asked_at: float | None = None
        """When, by ``time.monotonic()``."""
        self._listener: Callable[[str], None] | None = None
        self._insisted: Callable[[], None] | None = None

    def ask(self, reason: str) -> None:
        """Ask for the end; asking again does nothing."""
        if self.reason is None:
            self.asked_at = time.monotonic()
            self.reason = reason
        if self._listener is not None:
            self._listener(self.reason)

    def listen(self, listener: Callable[[str], None], insisted: Callable[[], None]) -> None:
        """Tell ``listener`` the reason, now if a stop was already requested; call ``insisted`` if that is not enough.

        Args:
            listener: called with the reason, by any thread, perhaps more than once.
            insisted: called in the main thread in the middle of whatever it does, and may raise.
        """
        self._listener, self._insisted = listener, insisted
        if self.reason is not None:
            listener(self.reason)

    def insist(self) -> None:
        """Let the main thread call ``insisted``, also where it waits in a system call or for a lock."""
        if self._insisted is not None:
            signal.pthread_kill(threading.main_thread().ident or 0, _NUDGE)

    def insisted(self) -> None:
        """Call ``insisted``; what the signal of ``insist`` does."""
        if self._insisted is not None:
            self._insisted()


class StopSignals:
    """Turns SIGTERM, SIGINT and SIGHUP into a request to stop; the same signal again ends the process at once.

    Made in the main thread, as early as possible.

    Args:
        request: the request.
    """

    def __init__(self, request: StopRequest) -> None:
        self._request = request
        for number in _SIGNALS:
            signal.signal(number, self._received)
        signal.signal(_NUDGE, lambda _number, _frame: request.insisted())

    def _received(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self._request.ask(f"received {signal.Signals(number).name}")


def stop_requested(path: Path) -> str | None:
    """Return the reason of a stop request, or None where there is none.

    Args:
        path: a file with one plain sentence; an empty file is a request too.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or "asked to stop"
    except FileNotFoundError:
        return None
    except OSError:
        return "asked to stop, by a request that cannot be read"


def end_with(parent: int) -> None:
    """End this process once its parent has died, from a thread.

    Args:
        parent: process number of the parent, as for ``ParentWatch``.
    """
    watch = ParentWatch(parent)

    def ended() -> None:
        while not watch.is_gone():
            time.sleep(_WATCH_S)
        os._exit(1)  # no answer is awaited any more, and the user's code may never end

    threading.Thread(target=ended, name="parent watch", daemon=True).start()
