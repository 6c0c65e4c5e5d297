"""Lifetime of a stage's workers: from the first pass, across all passes, until they are no longer needed.

They are freed by ``close()``, when the stage is garbage-collected, when the interpreter exits, and shortly after a
pass is abandoned, unless the next one begins at once. So code that abandons every pass, as ``zip`` does, does not pay
for a new start each time.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from ziggurat.dataflow.parallel.worker_pool import WorkerPool
from ziggurat.errors import DataError

__all__ = ["LINGER_S", "PoolLifetime"]

LINGER_S = 1.0
"""How long idle workers are kept after a pass was broken off."""

_logger = logging.getLogger(__name__)


class PoolLifetime:
    """Holds the team of one stage."""

    def __init__(self) -> None:
        self._team: WorkerPool | None = None
        self._user: object | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()
        self._busy_before_s = 0.0
        self.starts = 0
        """How many teams were started so far: the number of the team that is there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (PoolLifetime, ())  # in another process, or in a copy of the stage: workers of its own

    @property
    def busy_s(self) -> float:
        """Seconds that workers have worked so far, added up over the workers."""
        with self._lock:
            return self._busy_before_s + (self._team.busy_s if self._team is not None else 0.0)

    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        with self._lock:
            return [] if self._team is None else self._team.pids()

    def claim(self, user: object, start: Callable[[], WorkerPool]) -> WorkerPool:
        """Return the team, for a new pass; whoever had it before is cut off.

        Args:
            user: stands for the pass.
            start: starts the team where there is none.
        """
        with self._lock:
            self._stop_timer()
            if self._team is not None and not self._team.is_ours():
                self.close()
            elif self._team is not None and not self._team.healthy():
                _logger.warning("The workers of %s have gone meanwhile; new ones are started.", self._team.name)
                self.close()
            if self._team is None:
                self._team = start()
                self.starts += 1
            elif self._user is not None:
                self._team.abandon()
            self._user = user
            return self._team

    def check(self, user: object) -> None:
        """Raise where ``user`` has lost the team to a newer pass.

        Raises:
            DataError: in that case.
        """
        if self._user is not user:
            raise DataError(
                "A flow has one pass at a time, and a newer one of this flow has begun (or it was closed).",
                advice="Iterate one `iter(flow)` to its end, or build a second flow.",
            )

    def rest(self, user: object, *, finished: bool) -> None:
        """Give the team back at the end of a pass.

        Args:
            user: who had it.
            finished: the pass came to its end.
        """
        with self._lock:
            if self._user is not user:
                return
            self._user = None
            if self._team is None or finished:
                return
            # At the end of the interpreter the workers are gone already, and a thread cannot be started any more.
            if sys.is_finalizing() or not self._team.is_ours() or not self._team.healthy():
                self.close()
                return
            self._team.abandon()
            self._start_timer()

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            self._stop_timer()
            self._user = None
            team, self._team = self._team, None
            if team is not None:
                self._busy_before_s += team.busy_s
                team.close()

    def _start_timer(self) -> None:
        def close_idle() -> None:
            with self._lock:
                if self._timer is timer:
                    self.close()

        timer = self._timer = threading.Timer(LINGER_S, close_idle)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # the interpreter is ending
            self.close()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
