"""Termination of child processes with their parent: no process outlives its parent, however the parent ends.

There are two mechanisms:

- *The parent-death signal* of Linux works even while foreign code blocks the interpreter. But it follows the *thread*
  that started the process: the kernel would kill a child at once when that thread ends. It is set only where that
  thread lives as long as its process.
- *A handle of the parent process* becomes readable when the parent has ended, whichever thread started the child. The
  fork server polls it; in other processes a thread sleeps until then.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
from types import FrameType

__all__ = ["bind_to_parent", "die_with_parent_thread", "go_on", "parent_handle", "watch_parent"]

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0


def go_on(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by doing nothing.

    Ctrl-C and a scheduler's SIGTERM reach the whole process group. The parent decides what they mean; it may save a
    checkpoint, for which it needs its workers. A handler, other than SIG_IGN, is not passed on to programs that a map
    function starts.
    """


def bind_to_parent(parent: int, *, by_lasting_thread: bool) -> None:
    """Let this process end when process ``parent``, which started it, has ended.

    Args:
        parent: process id.
        by_lasting_thread: the thread that started this process lives as long as ``parent``.
    """
    if by_lasting_thread:
        die_with_parent_thread()
    handle = parent_handle(parent)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=watch_parent, args=(handle, parent), name="ziggurat-lifeline", daemon=True).start()


def die_with_parent_thread() -> None:
    """Ask the kernel for SIGKILL when the thread that started this process has ended (Linux only)."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        return


def parent_handle(parent: int) -> int | None:
    """Return a descriptor that becomes readable when ``parent`` has ended; None where the system has none."""
    try:
        return os.pidfd_open(parent)
    except (OSError, AttributeError):
        return None


def watch_parent(handle: int | None, parent: int) -> None:
    """Wait until ``parent`` has ended, then end this process."""
    if handle is not None:
        select.select([handle], [], [])
    else:
        sleeper = threading.Event()
        while os.getppid() == parent:
            sleeper.wait(_POLL_S)
    os.kill(os.getpid(), signal.SIGKILL)
