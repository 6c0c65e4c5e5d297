"""Process pool: one process per key, started on demand, shared by threads, closed when unused."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ziggurat.errors import JobError

__all__ = ["Entry", "PooledProcess", "ProcessPool"]

_SWEEP_S: Final = 1.0


class PooledProcess(Protocol):
    """A process that is kept warm."""

    def is_alive(self) -> bool:
        """Return whether it can still be used; also end what is left of it where it cannot."""
        ...

    def close(self) -> None:
        """End it with all that it started; closing twice does nothing."""
        ...


Key = TypeVar("Key", bound=Hashable)
Process = TypeVar("Process", bound=PooledProcess)


@dataclass(eq=False)
class Entry(Generic[Process]):
    """A process of the pool and its use.

    Args:
        process: None until it is started.
        users: threads that use it now.
        used_at: time of the last use, by the clock of the pool.
        is_gone: whether it was taken out of the pool.
    """

    process: Process | None = None
    users: int = 0
    used_at: float = 0.0
    is_gone: bool = False

    def __post_init__(self) -> None:
        self.starting = threading.Lock()


class ProcessPool(Generic[Key, Process]):
    """Processes by key. Any thread may call any method.

    Args:
        start: starts the process of a key and returns at once; its user waits until it is ready.
        most: processes at a time. For one more, the least recently used is ended; where all are in
            use, one waits.
        idle_s: a process that was unused for so long is ended.
        what: is kept, in the plural, for errors.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        start: Callable[[Key], Process],
        *,
        most: int,
        idle_s: float,
        what: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._most = most
        self._idle_s = idle_s
        self._what = what
        self._clock = clock
        self._entries: OrderedDict[Key, Entry[Process]] = OrderedDict()  # least recently used first
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._sweeper: threading.Thread | None = None

    @contextmanager
    def use(self, key: Key, wait_s: float) -> Iterator[Process]:
        """Yield the process of a key, which is not ended meanwhile to make room.

        Args:
            key: whose process.
            wait_s: longest time to wait for room.

        Raises:
            JobError: where there is no room in that time, or the pool is closed.
        """
        entry = self._take(key, wait_s)
        try:
            yield self._living(key, entry)
        finally:
            with self._changed:
                entry.users -= 1
                entry.used_at = self._clock()
                if entry.process is None and not entry.users and self._entries.get(key) is entry:
                    del self._entries[key]
                self._changed.notify_all()

    def entries(self) -> list[tuple[Key, Entry[Process]]]:
        """Return the entries, least recently used first."""
        with self._changed:
            return list(self._entries.items())

    def release(self, which: Callable[[Key], bool]) -> None:
        """End the processes of some keys, also those in use: their users get an error."""
        self._end(lambda key, _place: which(key))

    def sweep(self) -> None:
        """End what has been idle for too long, and what is left of processes that died."""
        there = [entry.process for _, entry in self.entries()]
        dead = [process for process in there if process is not None and not process.is_alive()]

        def is_over(_key: Key, entry: Entry[Process]) -> bool:
            # Meanwhile another thread may have used it, or have replaced the dead one.
            is_idle = self._clock() - entry.used_at >= self._idle_s
            return not entry.users and (is_idle or any(entry.process is each for each in dead))

        self._end(is_over)

    def close(self) -> None:
        """End everything; nothing is started any more."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        self.release(lambda _key: True)
        if self._sweeper is not None:
            self._sweeper.join()

    def _take(self, key: Key, wait_s: float) -> Entry[Process]:
        """Return the entry of a key with its user counted; make room for a new one."""
        last = time.monotonic() + wait_s
        ended: Entry[Process] | None = None
        with self._changed:
            while key not in self._entries and len(self._entries) >= self._most and not self._closed.is_set():
                unused = next((each for each, entry in self._entries.items() if not entry.users), None)
                if unused is not None:
                    ended = self._entries.pop(unused)
                elif not self._changed.wait(last - time.monotonic()):
                    raise self._no_room()
            if self._closed.is_set():
                raise JobError(f"The studio is shutting down, so no {self._what} are started any more.")
            entry = self._entries.setdefault(key, Entry())
            entry.users += 1
            entry.used_at = self._clock()
            self._entries.move_to_end(key)
            self._sweep_from_now_on()
        if ended is not None and ended.process is not None:
            ended.process.close()
        return entry

    def _living(self, key: Key, entry: Entry[Process]) -> Process:
        with entry.starting:
            if entry.is_gone:  # what took it out of the pool would not see what is started now
                raise JobError(f"One of the {self._what} was ended during a request.", advice="Ask again.")
            if entry.process is None or not entry.process.is_alive():
                before, entry.process = entry.process, None
                if before is not None:
                    before.close()
                entry.process = self._start(key)
            return entry.process

    def _end(self, which: Callable[[Key, Entry[Process]], bool]) -> None:
        with self._changed:
            ended = [self._entries.pop(key) for key, entry in list(self._entries.items()) if which(key, entry)]
            for entry in ended:
                entry.is_gone = True
            self._changed.notify_all()
        for entry in ended:
            with entry.starting:
                if entry.process is not None:
                    entry.process.close()

    def _sweep_from_now_on(self) -> None:
        def sweep() -> None:
            while not self._closed.wait(min(_SWEEP_S, max(0.05, self._idle_s / 4))):
                self.sweep()

        if self._sweeper is None:
            self._sweeper = threading.Thread(target=sweep, name=f"sweeper of {self._what}", daemon=True)
            self._sweeper.start()

    def _no_room(self) -> JobError:
        return JobError(
            f"At most {self._most} {self._what} are there at a time, and all are busy.",
            advice="Ask again later.",
            details={"most": self._most},
        )
