"""Caches of the pages, in memory and bounded: images of an answer, and results found in the background."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from starlette.requests import Request

from ziggurat.errors import ZigguratError

__all__ = [
    "BackgroundResult",
    "BackgroundResults",
    "BoundedCache",
    "ImageCache",
    "background_results",
    "image_cache",
    "of_application",
]

_IMAGE_SETS: Final = 40
_IMAGE_BYTES: Final = 64 << 20
_RESULTS: Final = 64
_AT_ONCE: Final = 2
_LOCK: Final = threading.Lock()

_Value = TypeVar("_Value")


class BoundedCache(Generic[_Value]):
    """The values that were used last. Any thread may call any method.

    Args:
        most: how many are kept.
        most_bytes: of all together; one that is larger is kept alone.
        size_bytes: returns the size of a value.
    """

    def __init__(
        self, most: int, *, most_bytes: int = 0, size_bytes: Callable[[_Value], int] = lambda _value: 0
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size_bytes = size_bytes
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, value: _Value) -> str:
        """Keep a value; return its key, which cannot be guessed: who was not told it does not see the value."""
        key = secrets.token_urlsafe(18)
        self.put(key, value)
        return key

    def put(self, key: Hashable, value: _Value) -> None:
        """Keep a value under a key, in place of the one that was there."""
        with self._lock:
            self._put(key, value)

    def get(self, key: Hashable) -> _Value | None:
        """Return a value; None where it is not kept any more."""
        with self._lock:
            return self._get(key)

    def take(self, key: Hashable) -> _Value | None:
        """Return a value for the only time; None where it is not kept any more."""
        with self._lock:
            return self._values.pop(key, None)

    def find(self, is_wanted: Callable[[_Value], bool]) -> _Value | None:
        """Return the first value that is wanted; None where none is."""
        with self._lock:
            return next((value for value in self._values.values() if is_wanted(value)), None)

    def get_or_put(
        self, key: Hashable, make: Callable[[], _Value], is_stale: Callable[[_Value], bool] = lambda _value: False
    ) -> tuple[_Value, bool]:
        """Return a value, and whether ``make`` made it just now: because there was none, or a stale one."""
        with self._lock:  # of two threads that ask at once, one makes it
            found = self._get(key)
            if found is not None and not is_stale(found):
                return found, False
            made = make()
            self._put(key, made)
            return made, True

    def _get(self, key: Hashable) -> _Value | None:
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def _put(self, key: Hashable, value: _Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > 1 and (len(self._values) > self._most or self._is_too_large()):
            self._values.popitem(last=False)

    def _is_too_large(self) -> bool:
        return self._most_bytes > 0 and sum(map(self._size_bytes, self._values.values())) > self._most_bytes


def of_application(request: Request, name: str, make: Callable[[], _Value]) -> _Value:
    """Return a value that an application has once; it is made when it is first asked for."""
    state = request.app.state
    with _LOCK:
        if not hasattr(state, name):
            setattr(state, name, make())
        return getattr(state, name)


class ImageCache:
    """Images that a page shows and a browser asks for a moment later: a page may not embed them itself."""

    def __init__(self) -> None:
        self._sets: BoundedCache[tuple[bytes, ...]] = BoundedCache(
            _IMAGE_SETS, most_bytes=_IMAGE_BYTES, size_bytes=lambda images: sum(map(len, images))
        )

    def keep(self, *images: bytes) -> str:
        """Keep a set of images; return its name."""
        return self._sets.add(images)

    def get(self, name: str, number: int) -> bytes | None:
        """Return an image of a set; None where it is not kept any more."""
        images = self._sets.get(name) or ()
        return images[number] if 0 <= number < len(images) else None


def image_cache(request: Request) -> ImageCache:
    """Return that of the application."""
    return of_application(request, "image_cache", ImageCache)


@dataclass
class BackgroundResult:
    """What is being found, or was.

    Args:
        value: it; None while unknown.
        error: why it could not be found; None if it could, or is unknown.
    """

    value: Any = None
    error: ZigguratError | None = None

    def __post_init__(self) -> None:
        self._ended = threading.Event()

    @property
    def is_ready(self) -> bool:
        """Whether the search has ended."""
        return self._ended.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether the search has ended without a value."""
        return self.is_ready and self.error is not None

    def find(self, compute: Callable[[], Any]) -> None:
        """Find it; a failure is kept like a result."""
        try:
            self.value = compute()
        except ZigguratError as error:
            self.error = error
        except Exception as error:  # an exception would end the thread silently
            self.error = ZigguratError(f"It could not be found out: {type(error).__name__}: {error}")
        finally:
            self._ended.set()

    def wait(self, wait_s: float) -> bool:
        """Wait for the end of the search; return whether it came."""
        return self._ended.wait(wait_s)


class BackgroundResults:
    """Results that take longer than a request may, each under its own key. Any thread may call any method.

    They are for what never changes, such as datasets: a result is never stale. They are lost with the server, which
    finds them again when they are asked for.
    """

    def __init__(self) -> None:
        self._results: BoundedCache[BackgroundResult] = BoundedCache(_RESULTS)
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    def get(self, key: Hashable, compute: Callable[[], Any], *, wait_s: float = 0.0) -> BackgroundResult:
        """Return a result; start to compute it if not started yet, or if it failed the last time.

        Args:
            key: of the result.
            compute: finds it.
            wait_s: how long to wait for it.
        """
        found, is_new = self._results.get_or_put(key, BackgroundResult, lambda result: result.has_failed)
        if is_new:
            # It only reads, so the server need not wait for it when it ends.
            threading.Thread(target=self._find, args=(found, compute), name="background-result", daemon=True).start()
        found.wait(wait_s)
        return found

    def peek(self, key: Hashable) -> BackgroundResult | None:
        """Return a result that is there or being looked for; None if not requested."""
        return self._results.get(key)

    def _find(self, made: BackgroundResult, compute: Callable[[], Any]) -> None:
        with self._room:
            made.find(compute)


def background_results(request: Request) -> BackgroundResults:
    """Return those of the application."""
    return of_application(request, "background_results", BackgroundResults)
