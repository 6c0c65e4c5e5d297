"""State machine of jobs: the legal transitions, and their application to the store with a notice to subscribers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ziggurat.entities import JOB_STATES, Job
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.pubsub import EventBus

__all__ = [
    "EVENTS",
    "GONE",
    "TRANSITIONS",
    "JobTransitions",
    "next_state",
    "possible_events",
    "states_before",
]


GONE: Final = ""
"""The state of what is no job: before it is submitted, and after it is deleted."""

_ENDS: Final = {"end_done": "done", "end_stopped": "stopped", "end_failed": "failed", "lost": "failed"}

TRANSITIONS: Final = MappingProxyType(
    {
        GONE: {"submit": "queued"},
        "queued": {
            "start": "running",
            "adopt": "running",
            "stop": "stopped",
            "pause": "stopped",
            # What it waits for failed, so it can never start.
            "end_failed": "failed",
            "delete": GONE,
        },
        "running": {"not_begun": "queued", "give_back": "queued", "stop": "stopping", "pause": "stopping", **_ENDS},
        # Asked again it is the same request: two people may press the button at once.
        "stopping": {"not_begun": "stopped", "stop": "stopping", "pause": "stopping", **_ENDS},
        "stopped": {"adopt": "running", "resume": "queued", "delete": GONE},
        "failed": {"adopt": "running", "resume": "queued", "retry": "queued", "delete": GONE},
        "done": {"delete": GONE},
    }
)
"""State → event → the state after it. What is not here is refused.

``resume`` and ``retry`` both go on from the newest checkpoint; ``retry`` is for what failed. A job in the queue that is
paused leaves the queue. ``lost``: the worker ended without a word. ``not_begun``: no worker was started, because the
process that was to do it was killed, or the cluster could not. ``give_back``: its cluster took the node back, or lost
it. ``adopt``: a worker was started in its folder from outside.
"""

EVENTS: Final = (
    "submit",
    "start",
    "not_begun",
    "give_back",
    "adopt",
    "stop",
    "pause",
    "resume",
    "retry",
    "end_done",
    "end_stopped",
    "end_failed",
    "lost",
    "delete",
)

_BY_PEOPLE: Final = ("stop", "pause", "resume", "retry", "delete")

_DONE_TO_IT: Final = {
    "submit": "submitted",
    "not_begun": "put back into the queue",
    "give_back": "given back by its cluster",
    "adopt": "adopted",
    "start": "started",
    "stop": "stopped",
    "pause": "paused",
    "resume": "resumed",
    "retry": "retried",
    "end_done": "completed",
    "end_stopped": "ended",
    "end_failed": "ended",
    "lost": "lost",
    "delete": "deleted",
}


def next_state(state: str, event: str, job_id: str = "") -> str:
    """Return the state after an event.

    Args:
        state: a name in ``JOB_STATES``, or ``GONE``.
        event: a name in ``EVENTS``.
        job_id: of the job, for the error.

    Raises:
        UnknownNameError: where there is no such state or event.
        JobError: where the event is not possible in that state; it says which are.
    """
    if state not in TRANSITIONS:
        raise UnknownNameError("state of a job", state, JOB_STATES)
    if event not in EVENTS:
        raise UnknownNameError("event of a job", event, EVENTS)
    after = TRANSITIONS[state].get(event)
    if after is None:
        raise _not_possible(state, event, job_id)
    return after


def possible_events(state: str) -> tuple[str, ...]:
    """Return what people can do to a job in a state, in the order of ``EVENTS``."""
    return tuple(event for event in _BY_PEOPLE if event in TRANSITIONS.get(state, {}))


def states_before(event: str) -> tuple[str, ...]:
    """Return the states in which an event is possible."""
    return tuple(state for state in JOB_STATES if event in TRANSITIONS[state])


def _not_possible(state: str, event: str, job_id: str) -> JobError:
    allowed = " or ".join(each or "new" for each in TRANSITIONS if event in TRANSITIONS[each])
    possible = possible_events(state)
    advice = f"Possible now: {', '.join(possible)}." if possible else "There is no such job any more."
    if state == "stopping":
        advice = "Wait until its worker has saved and ended. " + advice
    elif event == "delete" and state == "running":
        advice = "Stop it first, or delete it by force. " + advice
    return JobError(
        f"Only a job that is {allowed} can be {_DONE_TO_IT[event]}.",
        received=f"job {job_id} is {state or 'not there'}" if job_id else f"a job that is {state or 'not there'}",
        advice=advice,
        details={"job": job_id, "state": state, "event": event, "possible": list(possible)},
    )


_TRIES = 20
_MOVES = ("state", "added", "deleted")


class JobTransitions:
    """Changes jobs in the store and tells the hub.

    Args:
        store: where the jobs are.
        hub: passes notices on.
    """

    def __init__(self, store: JobStore, hub: EventBus) -> None:
        self._store = store
        self._hub = hub
        self._version = 0
        self._moves = 0
        self._changed = threading.Condition()

    def apply(self, job: Job, event: str, **fields: Any) -> bool:
        """Let an event happen to a job that was read before; return False where its state is another one by now.

        Args:
            job: as it was read.
            event: a name in ``EVENTS``.
            fields: other columns that change with the state.

        Raises:
            JobError: where the event is not possible in that state.
        """
        after = next_state(job.state, event, job.id)
        if not self._store.jobs.move(job.id, (job.state,), after, **fields):
            return False
        self.tell("state", job.id)
        return True

    def request(self, job_id: str, event: str, **fields: Any) -> Job:
        """Let an event happen to a job, whatever its state is; return the job as it was before.

        Raises:
            JobError: where there is no such job, or the event is not possible in its state.
        """
        for _ in range(_TRIES):
            job = self._store.jobs.get(job_id)
            if self.apply(job, event, **fields):
                return job
        raise JobError("The state of a job changes all the time.", received=job_id, advice="Try again.")

    def note(self, job: Job, fields: Mapping[str, Any], kind: str = "changed") -> None:
        """Change columns other than the state, where they differ."""
        different = {name: value for name, value in fields.items() if getattr(job, name) != value}
        if different:
            self._store.jobs.note(job.id, **different)
            self.tell(kind, job.id)

    def tell(self, kind: str, job_id: str, offset: int = 0) -> None:
        """Tell everybody that there is news of a job: on the topics ``jobs`` and ``job:ID``."""
        self._hub.publish("jobs", kind, job_id, offset)
        self._hub.publish(f"job:{job_id}", kind, job_id, offset)
        with self._changed:
            self._version += 1
            self._moves += kind in _MOVES
            self._changed.notify_all()

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    @property
    def moves(self) -> int:
        """Grows with every job that comes, goes, or gets another state."""
        return self._moves

    def wait(self, since: int, timeout_s: float) -> int:
        """Wait until the version is above ``since``, at most so long; return it."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > since, timeout_s)
            return self._version
