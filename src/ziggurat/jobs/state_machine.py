"""Job state transitions: checked against the table, applied with compare-and-set, and published."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ziggurat.entities import Job
from ziggurat.errors import JobError
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.pubsub import EventBus
from ziggurat.jobs.transitions import next_state

__all__ = ["JobTransitions"]

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
