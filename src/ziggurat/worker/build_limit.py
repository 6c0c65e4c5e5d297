"""Time limit for building a network: an attempt whose network file never returns fails and says where it hung."""

from __future__ import annotations

import faulthandler
import linecache
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ziggurat.errors import NetworkCodeError

__all__ = ["BuildLimit"]

_BACKSTOP_S: Final = 15
"""How much later the process is ended where a call of C lets no other thread run."""


class BuildLimit:
    """A time limit for what is done inside of it, by the main thread; use it as a context manager.

    Args:
        limit_s: how long it may take; 0 for no limit.
        network: file name of the network.
        end: ends the process; called by a thread of its own with the error and the stack of the main thread.
    """

    def __init__(self, limit_s: float, network: str, end: Callable[[NetworkCodeError, str], None]) -> None:
        self._limit_s = limit_s
        self._network = network
        self._end = end
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(limit_s, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._limit_s:
            self._timer.start()
            # A thread of C: it needs no turn of Python to write the stacks and to end the process.
            faulthandler.dump_traceback_later(self._limit_s + _BACKSTOP_S, exit=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        self._timer.cancel()
        faulthandler.cancel_dump_traceback_later()

    def _expire(self) -> None:
        with self._lock:
            if self._is_over:
                return
            frame = sys._current_frames().get(threading.main_thread().ident or 0)
            stack = traceback.extract_stack(frame)
            self._end(self._error(stack), "".join(traceback.format_list(stack)))

    def _error(self, stack: traceback.StackSummary) -> NetworkCodeError:
        users = [each for each in stack if each.filename == self._network]
        place = users[-1] if users else stack[-1]
        line = place.lineno or 0
        source = linecache.getline(place.filename, line).strip()
        return NetworkCodeError(
            f"Building the network must end within `build_limit_s`, {self._limit_s:g} s.",
            received=f"it was still at {place.filename}, line {line}" + (f": {source}" if source else ""),
            advice="Look for a loop without an end there; where it needs more time, raise the setting `build_limit_s`.",
            details={"file": place.filename, "line": line, "source": source},
        )
