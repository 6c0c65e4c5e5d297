"""Flash messages: outcomes shown on the next page after a form was accepted.

A browser without scripts is redirected to that page first.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import Final

from starlette.requests import Request

from ziggurat.web.pages.home.bulk import Outcome

__all__ = ["FlashMessages", "flash_messages"]

_MOST: Final = 100
_LOCK: Final = threading.Lock()


class FlashMessages:
    """The newest outcomes, each under a name that cannot be guessed. Any thread may call any method."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, Outcome] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, outcome: Outcome) -> str:
        """Keep an outcome, and let go of the oldest one; return its name."""
        name = secrets.token_urlsafe(9)
        with self._lock:
            self._outcomes[name] = outcome
            while len(self._outcomes) > _MOST:
                self._outcomes.popitem(last=False)
        return name

    def take(self, name: str) -> Outcome | None:
        """Return an outcome for the only time; None where it was told already."""
        with self._lock:
            return self._outcomes.pop(name, None)


def flash_messages(request: Request) -> FlashMessages:
    """Return those of the application."""
    state = request.app.state
    with _LOCK:
        if not hasattr(state, "flash_messages"):
            state.flash_messages = FlashMessages()
        return state.flash_messages
