"""How a worker that was asked to stop and does not is ended: SIGTERM first, then SIGKILL, each after a grace period.

A grace period counts from the last progress that can be seen from outside: a step that was completed, a phase that
ended, a checkpoint that is being written. So a worker that is slow is left alone, and one that hangs is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.entities import read_heartbeat
from ziggurat.jobs.reasons import clock_text
from ziggurat.layout import JobFolder

__all__ = ["Escalation", "StopGrace", "plain_reason"]

_QUIET_S: Final = 5.0
"""How long nothing is said of force: nearly all workers end within that time."""

_STEPS: Final = 3
"""How many usual steps a grace period lasts at least."""

_FORCE: Final = "; will be ended by force at "


@dataclass(frozen=True, kw_only=True)
class StopGrace:
    """How long a worker that was asked to stop may show no progress.

    Args:
        stop_s: until it gets SIGTERM.
        kill_s: from then until it is killed.
    """

    stop_s: float = 120.0
    kill_s: float = 30.0


@dataclass
class Escalation:
    """The end of one worker that was asked to stop.

    Args:
        grace: how long it may show no progress.
        is_hurried: whether the next stage is due at once.
        is_terminated: whether it got SIGTERM.
        due: when the next stage is due, in seconds since 1970; None before the first look.
    """

    grace: StopGrace
    is_hurried: bool = False
    is_terminated: bool = False
    due: float | None = None
    _began: float = field(default=0.0, init=False)
    _progressed: float = field(default=0.0, init=False)
    _seen: Any = field(default=None, init=False)

    def look(self, folder: JobFolder, now: float) -> str:
        """Return what is due: ``terminate``, ``kill``, or nothing.

        Args:
            folder: of the job.
            now: seconds since 1970; only differences matter, so the clocks of worker and disk may be others.
        """
        seen, usual_step_s = _progress(folder)
        if self.due is None:
            self._began = now
        if self.due is None or seen != self._seen:
            self._seen, self._progressed = seen, now
        grace_s = self.grace.kill_s if self.is_terminated else self.grace.stop_s
        self.due = self._progressed + max(grace_s, _STEPS * usual_step_s)
        if not self.is_hurried and now < self.due:
            return ""
        self.is_hurried = False
        if self.is_terminated:
            return "kill"
        self.is_terminated = True
        self._progressed = now
        self.due = now + max(self.grace.kill_s, _STEPS * usual_step_s)
        return "terminate"

    def reason(self, asked: str, now: float) -> str:
        """Return what is said of the job meanwhile: why it stops, and when that will be by force."""
        if self.due is None or (now - self._began < _QUIET_S and not self.is_terminated):
            return asked
        killed = self.due if self.is_terminated else self.due + self.grace.kill_s
        return f"{asked}{_FORCE}{clock_text(killed, now)}"


def plain_reason(reason: str) -> str:
    """Return why a job was asked to stop, without the part about force."""
    return reason.partition(_FORCE)[0]


def _progress(folder: JobFolder) -> tuple[Any, float]:
    """Return what differs after each progress, and the usual time of a step in seconds."""
    heartbeat = read_heartbeat(folder.heartbeat)
    files = tuple(sorted(_checkpoint_files(folder)))
    if heartbeat is None:
        return files, 0.0
    return (heartbeat.phase, heartbeat.step_began, heartbeat.global_step, files), heartbeat.usual_step_s


def _checkpoint_files(folder: JobFolder) -> Iterator[tuple[str, int, int]]:
    """Return name, time and size of each file of a checkpoint, those that are being written among them."""
    for place, _, names in os.walk(folder.checkpoints):
        for name in names:
            path = os.path.join(place, name)
            try:
                found = os.stat(path)
            except OSError:
                continue
            yield path, found.st_mtime_ns, found.st_size
