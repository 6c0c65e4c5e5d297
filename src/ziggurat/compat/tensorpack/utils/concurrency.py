"""Threads that can be stopped, and processes that end with their program."""

from __future__ import annotations

import atexit
import bisect
import multiprocessing
import queue
import signal
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import StateError
from ziggurat.tf import logger

__all__ = [
    "DIE",
    "LoopThread",
    "OrderedContainer",
    "ShareSessionThread",
    "StoppableThread",
    "enable_death_signal",
    "ensure_proc_terminate",
    "is_main_thread",
    "mask_sigint",
    "start_proc_mask_signal",
    "subproc_call",
]

_LOOK_EVERY_S: Final = 0.2


class StoppableThread(threading.Thread):
    """A thread that is told to stop by an event.

    Args:
        evt: the event; a new one where it is None.
    """

    def __init__(self, evt: threading.Event | None = None) -> None:
        super().__init__()
        self._told = evt or threading.Event()

    def stop(self) -> None:
        """Tell it to stop."""
        self._told.set()

    def stopped(self) -> bool:
        """Return whether it was told to stop."""
        return self._told.is_set()

    def queue_put_stoppable(self, q: Any, obj: Any) -> None:
        """Put an object into a queue; give up when the thread is stopped."""
        while not self.stopped():
            try:
                q.put(obj, timeout=_LOOK_EVERY_S)
            except queue.Full:
                continue
            return

    def queue_get_stoppable(self, q: Any) -> Any:
        """Return the next object of a queue; None when the thread is stopped."""
        while not self.stopped():
            try:
                return q.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                continue
        return None


class LoopThread(StoppableThread):
    """A thread that calls a function again and again.

    Args:
        func: the function.
        pausable: whether ``pause`` and ``resume`` may be called.
    """

    def __init__(self, func: Callable[[], Any], pausable: bool = True) -> None:
        super().__init__()
        self.daemon = True
        self._function = func
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._is_pausable = pausable

    def run(self) -> None:
        """Call the function until the thread is stopped."""
        while not self.stopped():
            if self._may_go_on.wait(_LOOK_EVERY_S):
                self._function()

    def pause(self) -> None:
        """Hold the loop, after the call under way."""
        if not self._is_pausable:
            raise StateError("This loop cannot be held.", advice="Make it with `pausable=True`.")
        self._may_go_on.clear()

    def resume(self) -> None:
        """Let the loop go on."""
        self._may_go_on.set()


class ShareSessionThread(threading.Thread):
    """A thread whose default session is the one of the thread that starts it.

    Args:
        th: the thread whose ``run`` is called inside; a subclass overrides ``run`` instead.
    """

    def __init__(self, th: threading.Thread | None = None) -> None:
        super().__init__()
        self._inner = th
        self._session: Any = None
        if th is not None:
            self.name, self.daemon = th.name, th.daemon

    @contextmanager
    def default_sess(self) -> Iterator[Any]:
        """Make the session the default one of this thread inside the block; give it, or None where there is none."""
        if self._session is None:
            logger.warning("The thread %s was started without a default session.", self.name)
            yield None
            return
        with self._session.graph.as_default(), self._session.as_default():
            yield self._session

    def start(self) -> None:
        """Start it, with the default session of the calling thread."""
        self._session = tf.get_default_session()
        super().start()

    def run(self) -> None:
        """Run the thread inside with the session."""
        if self._inner is None:
            raise NotImplementedError("A subclass overrides `run`.")
        with self.default_sess():
            self._inner.run()


class DIE:
    """Stands for the end of a queue."""


class OrderedContainer:
    """Gives items in the order of their ranks, without gaps, whatever the order in which they come.

    Args:
        start: the first rank.
    """

    def __init__(self, start: int = 0) -> None:
        self.wait_for = start
        self.ranks: list[int] = []
        self.data: list[Any] = []

    def put(self, rank: int, val: Any) -> None:
        """Take an item."""
        place = bisect.bisect(self.ranks, rank)
        self.ranks.insert(place, rank)
        self.data.insert(place, val)

    def has_next(self) -> bool:
        """Return whether the next item is there."""
        return bool(self.ranks) and self.ranks[0] == self.wait_for

    def get(self) -> tuple[int, Any]:
        """Return the next rank and its item."""
        if not self.has_next():
            raise StateError(f"Item {self.wait_for} is missing: items are given in the order of their ranks.")
        self.wait_for += 1
        return self.ranks.pop(0), self.data.pop(0)


def ensure_proc_terminate(proc: Any) -> None:
    """Let processes end when the program does.

    Args:
        proc: a process of ``multiprocessing``, or a list of them.
    """
    for each in proc if isinstance(proc, list | tuple) else [proc]:
        atexit.register(_end, weakref.ref(each))


def _end(reference: weakref.ref[Any]) -> None:
    process = reference()
    if process is not None and process.is_alive():
        process.terminate()
        process.join()


def enable_death_signal(_warn: bool = True) -> None:
    """Let this process end when its parent does, even if that is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    signal.raise_signal(signal.SIGTERM)


def is_main_thread() -> bool:
    """Return whether it is called in the first thread of the program."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def mask_sigint() -> Iterator[bool]:
    """Ignore Ctrl-C inside the block; give False outside of the first thread, where nothing changes."""
    if not is_main_thread():
        yield False
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, before)


def start_proc_mask_signal(proc: Any) -> None:
    """Start processes that ignore Ctrl-C.

    Args:
        proc: a process or thread, or a list of them.
    """
    with mask_sigint():
        for each in proc if isinstance(proc, list | tuple) else [proc]:
            each.start()


def subproc_call(cmd: str, timeout: float | None = None) -> tuple[bytes, int]:
    """Run a command in a shell; return what it printed and its exit code: -1 out of time, -2 where it does not start.

    Args:
        cmd: the command.
        timeout: in seconds; None for no limit.
    """
    try:
        done = subprocess.run(
            cmd, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        logger.warning("The command `%s` was ended after %s s.", cmd, timeout)
        return error.output or b"", -1
    except OSError as error:
        logger.warning("The command `%s` did not start: %s", cmd, error)
        return b"", -2
    return done.stdout, done.returncode
