"""Hourly clean-up thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

__all__ = ["Janitor"]

_LOG: Final = logging.getLogger(__name__)


class Janitor:
    """Does its rounds until it is closed; what fails is logged and tried again in the next round.

    Args:
        duties: called one after the other; any number of calls does no harm.
        every_s: seconds between two rounds; the first comes after so long.
    """

    def __init__(self, duties: Sequence[Callable[[], Any]], every_s: float = 3600.0) -> None:
        self._duties = tuple(duties)
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="janitor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice does nothing."""
        self._closing.set()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _work(self) -> None:
        while not self._closing.wait(self._every_s):
            for duty in self._duties:
                try:
                    duty()
                except Exception:
                    _LOG.exception("clearing away failed; it is tried again in %.0f s", self._every_s)
