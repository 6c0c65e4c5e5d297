"""Request queue of an inference process: filled by a reader thread, drained in groups that are answered together."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from ziggurat.records.codec import DecodingError
from ziggurat.records.frames import read_frame

__all__ = ["AT_ONCE", "Requests"]

AT_ONCE: Final = 32
"""Images that a network gets in one batch; as many as the task ``predict`` gives it, so that both say the same."""

_WAIT_S: Final = 0.005
_END: Final[Mapping[str, Any]] = {}


class Requests:
    """Hands out what was asked, in its order.

    Args:
        source: where requests come from; a thread reads it until it ends.
        clock: seconds, never going back.
    """

    def __init__(self, source: IO[bytes], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._queue: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._kept: deque[Mapping[str, Any]] = deque()
        self._was_group = False
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def end(self) -> None:
        """Let ``take`` return nothing from now on; also a signal handler may call it."""
        self._queue.put(_END)

    def take(self, idle_s: float) -> list[Mapping[str, Any]]:
        """Return the next request, or several that ask for predictions; nothing where it is time to end.

        Requests that are there already are taken together. Only where that has just happened it waits some
        milliseconds for more, so that somebody who asks alone never waits.

        Args:
            idle_s: longest time to wait for a request.
        """
        first = self._next(idle_s)
        if not first:
            return []
        group, last = [first], self._clock() + (_WAIT_S if self._was_group else 0)
        while first.get("do") == "predict" and _pictures(group) < AT_ONCE:
            following = self._next(max(0.0, last - self._clock()))
            if following is None:
                break
            if following.get("do") != "predict" or _pictures([*group, following]) > AT_ONCE:
                self._kept.append(following)
                break
            group.append(following)
        self._was_group = len(group) > 1
        return group

    def _next(self, wait_s: float) -> Mapping[str, Any] | None:
        if self._kept:
            return self._kept.popleft()
        try:
            return self._queue.get(timeout=wait_s) if wait_s else self._queue.get_nowait()
        except queue.Empty:
            return None

    def _read(self) -> None:
        try:
            while isinstance(request := read_frame(self._source), dict) and request:
                self._queue.put(request)
        except (DecodingError, OSError) as error:
            sys.stderr.write(f"Requests cannot be read any more: {error}\n")
        self.end()


def _pictures(group: list[Mapping[str, Any]]) -> int:
    counts = (len(request["pictures"]) for request in group if isinstance(request.get("pictures"), list))
    return sum(counts)
