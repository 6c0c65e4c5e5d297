"""Actions that a job permits in its present state, and the reason why another is unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Job

__all__ = ["ACTIONS", "JobAction", "actions_of", "why_no_learning_rate"]

ACTIONS: Final = ("stop", "pause", "stop_now", "resume", "retry")
"""What is asked for by one button, without anything to fill in."""

_STATES: Final = {
    "stop": ("queued", "running"),
    "pause": ("queued", "running"),
    "stop_now": ("stopping",),
    "resume": ("stopped",),
    "retry": ("failed",),
}
_TITLES: Final = {"stop": "Stop", "pause": "Pause", "stop_now": "Stop now", "resume": "Resume", "retry": "Retry"}
_HINTS: Final = {
    "stop": "Saves a checkpoint and ends; it can be resumed.",
    "pause": "Saves a checkpoint and frees its devices; Resume goes on at the exact step.",
    "stop_now": "Kills its processes; what is not in a checkpoint is lost. Its folder stays, and it can be resumed.",
    "resume": "Goes on from the newest checkpoint, at the exact step.",
    "retry": "Goes on from the newest checkpoint, or from the start where there is none.",
}


@dataclass(frozen=True)
class JobAction:
    """A button.

    Args:
        name: a name in ``ACTIONS``.
        title: what stands on it.
        hint: what it does.
    """

    name: str
    title: str
    hint: str


def actions_of(job: Job) -> list[JobAction]:
    """Return what can be done with a job now; in the queue, a stop takes it out."""
    return [
        JobAction(name, _TITLES[name], "Takes it out of the queue." if job.state == "queued" else _HINTS[name])
        for name in ACTIONS
        if job.state in _STATES[name]
    ]


def why_no_learning_rate(job: Job) -> str:
    """Return why the learning rate cannot be set now; empty where it can."""
    if job.state == "running" and "learning_rate" in job.scalars:
        return ""
    if job.state in ("queued", "running"):
        return "It can be set once the training has begun."
    if job.state == "stopping":
        return "The training is about to end."
    return "It can be set while the training runs; a clone starts with another one."
