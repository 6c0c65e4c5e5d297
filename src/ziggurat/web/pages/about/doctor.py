"""Background run of the installation diagnostics, which take longer than a request should."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from starlette.requests import Request

from ziggurat.workspace.doctor import Finding, examine

__all__ = ["DoctorLook", "doctor_look"]

_LOG: Final = logging.getLogger(__name__)
_LOCK: Final = threading.Lock()


class DoctorLook:
    """Looks in a thread of its own; what is found so far can be read at any time. Any thread may call any method.

    Args:
        examine: yields what is found.
    """

    def __init__(self, examine: Callable[[], Iterable[Finding]]) -> None:
        self._examine = examine
        self._lock = threading.Lock()
        self._findings: list[Finding] | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_looking(self) -> bool:
        """Whether a look is under way."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def findings(self) -> list[Finding] | None:
        """What the newest look found so far; None before the first."""
        found = self._findings
        return None if found is None else list(found)

    def start(self) -> None:
        """Begin a look; while one is under way, nothing is begun."""
        with self._lock:
            if self.is_looking:
                return
            self._findings = []
            self._thread = threading.Thread(target=self._look, args=(self._findings,), name="doctor", daemon=True)
            self._thread.start()

    def _look(self, found: list[Finding]) -> None:
        try:
            found.extend(self._examine())
        except Exception as error:  # what was found until then is still worth reading
            _LOG.exception("the look at this installation failed")
            found.append(Finding("studio", "doctor", "problem", f"it could not look at the rest: {error}"))


def doctor_look(request: Request) -> DoctorLook:
    """Return that of the application."""
    state = request.app.state
    with _LOCK:
        if not hasattr(state, "doctor_look"):
            state.doctor_look = DoctorLook(lambda: examine(state.studio.settings))
        return state.doctor_look
