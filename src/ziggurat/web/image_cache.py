"""Short-lived cache of images rendered for a page and requested a moment later.

A page may not embed the images itself.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

__all__ = ["ImageCache", "image_cache"]

_MOST_SETS: Final = 40
_MOST_BYTES: Final = 64 << 20
_LOCK: Final = threading.Lock()


class ImageCache:
    """The newest sets of images, each under a name that cannot be guessed. Any thread may call any method."""

    def __init__(self) -> None:
        self._sets: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, pictures: Sequence[bytes]) -> str:
        """Keep images, and let go of the oldest ones; return the name of the set."""
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._sets[name] = tuple(pictures)
            while len(self._sets) > 1 and (len(self._sets) > _MOST_SETS or self._size_bytes() > _MOST_BYTES):
                self._sets.popitem(last=False)
        return name

    def get(self, name: str, number: int) -> bytes | None:
        """Return an image; None where it is not kept any more."""
        with self._lock:
            pictures = self._sets.get(name, ())
        return pictures[number] if 0 <= number < len(pictures) else None

    def _size_bytes(self) -> int:
        return sum(len(picture) for pictures in self._sets.values() for picture in pictures)


def image_cache(request: Request) -> ImageCache:
    """Return those of the application."""
    state = request.app.state
    with _LOCK:
        if not hasattr(state, "image_cache"):
            state.image_cache = ImageCache()
        return state.image_cache
