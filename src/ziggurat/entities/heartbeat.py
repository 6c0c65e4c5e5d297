"""Worker heartbeat: its file, the health that it indicates, and the exit codes of workers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from ziggurat.atomic import atomic_write_text

__all__ = [
    "EXIT_DONE",
    "EXIT_STOPPED",
    "Heartbeat",
    "Pulse",
    "judge_pulse",
    "read_heartbeat",
    "write_heartbeat",
]

EXIT_DONE: Final = 0
"""Exit code of a worker whose job is complete. The codes of failures are those of the error families."""

EXIT_STOPPED: Final = 75
"""Exit code of a worker that was asked to stop, saved, and can be resumed."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """A worker's pulse, written every second or so by a thread of its own.

    Args:
        pid: process of the worker.
        host: name of its machine.
        time: when it was written, in seconds since 1970.
        phase: ``starting``, ``training`` or ``creating``, ``stopping``.
        epoch: the epoch it is in.
        global_step: steps done.
        step_began: when the step (or the set-up) that is under way began, in seconds since 1970.
        usual_step_s: median of recent steps; 0 before there are any.
    """

    pid: int
    host: str
    time: float
    phase: str = "starting"
    epoch: int = 0
    global_step: int = 0
    step_began: float = 0.0
    usual_step_s: float = 0.0


class Pulse(Enum):
    """What a heartbeat says of the worker."""

    ALIVE = "alive"
    HUNG = "hung"
    """The worker answers, but the step under way takes far longer than usual."""
    SILENT = "silent"
    """No heartbeat for too long: the worker is dead, or stuck in a call that lets nothing else run."""


def judge_pulse(
    heartbeat: Heartbeat, now: float, *, hung_after_s: float = 120.0, silent_after_s: float = 15.0
) -> Pulse:
    """Return what a heartbeat says.

    Args:
        heartbeat: the newest one.
        now: seconds since 1970.
        hung_after_s: longest time for one step, and for the start; twenty times the usual step is allowed where that
            is more. Saving at the end may take its time.
        silent_after_s: longest time without a heartbeat.
    """
    if now - heartbeat.time > silent_after_s:
        return Pulse.SILENT
    longest_s = max(hung_after_s, 20 * heartbeat.usual_step_s)
    is_known = heartbeat.step_began > 0
    if is_known and heartbeat.phase != "stopping" and now - heartbeat.step_began > longest_s:
        return Pulse.HUNG
    return Pulse.ALIVE


def write_heartbeat(path: Path, heartbeat: Heartbeat) -> None:
    """Replace the file atomically: a reader never sees half of it.

    Raises:
        StorageError: where it cannot be written.
    """
    atomic_write_text(path, json.dumps(asdict(heartbeat)), "The heartbeat", durable=False)


def read_heartbeat(path: Path) -> Heartbeat | None:
    """Return the newest heartbeat, or None where there is none or it is of another release."""
    try:
        return Heartbeat(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
