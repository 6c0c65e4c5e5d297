"""Results that take longer than a page request: computed in the background, cached, shown when ready."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from ziggurat.errors import ZigguratError

__all__ = ["BackgroundResult", "BackgroundResults", "background_results"]

_MOST: Final = 64
_AT_ONCE: Final = 2
_LOCK: Final = threading.Lock()


@dataclass
class BackgroundResult:
    """What is being found, or was.

    Args:
        value: it; None while unknown.
        error: why it could not be found; None where it could, or nobody knows.
    """

    value: Any = None
    error: ZigguratError | None = None

    def __post_init__(self) -> None:
        self._ended = threading.Event()

    @property
    def is_ready(self) -> bool:
        """Whether the search has ended."""
        return self._ended.is_set()

    def find(self, compute: Callable[[], Any]) -> None:
        """Find it; a failure is kept like a result."""
        try:
            self.value = compute()
        except ZigguratError as error:
            self.error = error
        except Exception as error:  # nobody else hears of what ends a thread
            self.error = ZigguratError(f"It could not be found out: {type(error).__name__}: {error}")
        finally:
            self._ended.set()

    def wait(self, wait_s: float) -> bool:
        """Wait for the end of the search; return whether it came."""
        return self._ended.wait(wait_s)


class BackgroundResults:
    """The newest results, each under its own key. Any thread may call any method.

    They are for what never changes, such as datasets: a result is never stale. They are lost with the server, which
    finds them again when they are asked for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._results: OrderedDict[Hashable, BackgroundResult] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Any], *, wait_s: float = 0.0) -> BackgroundResult:
        """Return a result; begin to look for it where nobody did, or where it failed the last time.

        Args:
            key: of the result.
            compute: finds it.
            wait_s: how long to wait for it.
        """
        found = self.peek(key)
        if found is None or (found.is_ready and found.error is not None):
            found = self._begin(key, compute)
        found.wait(wait_s)
        return found

    def peek(self, key: Hashable) -> BackgroundResult | None:
        """Return a result that is there or being looked for; None if not requested."""
        with self._lock:
            found = self._results.get(key)
            if found is not None:
                self._results.move_to_end(key)
            return found

    def _begin(self, key: Hashable, compute: Callable[[], Any]) -> BackgroundResult:
        made = BackgroundResult()
        with self._lock:
            found = self._results.get(key)
            if found is not None and not (found.is_ready and found.error is not None):
                return found  # another thread was quicker
            self._results[key] = made
            self._results.move_to_end(key)
            while len(self._results) > _MOST:
                self._results.popitem(last=False)
        # It only reads, so the server need not wait for it when it ends.
        threading.Thread(target=self._find, args=(made, compute), name="background-result", daemon=True).start()
        return made

    def _find(self, made: BackgroundResult, compute: Callable[[], Any]) -> None:
        with self._room:
            made.find(compute)


def background_results(request: Request) -> BackgroundResults:
    """Return those of the application."""
    state = request.app.state
    with _LOCK:
        if not hasattr(state, "background_results"):
            state.background_results = BackgroundResults()
        return state.background_results
