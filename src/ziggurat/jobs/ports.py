"""Store interface for jobs, as protocols: implemented by the store and by the test double."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ziggurat.entities import Job, JobChange, NewJob
from ziggurat.events import Event

__all__ = ["EventRows", "JobRows", "JobStore"]


class JobRows(Protocol):
    """The jobs. Every method is one transaction."""

    def add(self, new: NewJob, /) -> Job:
        """Add a job at the end of the queue."""
        ...

    def get(self, job_id: str, /) -> Job:
        """Return a job; JobError where there is none."""
        ...

    def find(self, job_id: str, /) -> Job | None:
        """Return a job, or None."""
        ...

    def some(self, job_ids: Iterable[str], /) -> list[Job]:
        """Return the jobs with these ids that there are, in any order."""
        ...

    def in_states(self, states: Sequence[str], /) -> list[Job]:
        """Return the jobs in some states."""
        ...

    def change(self, job_id: str, change: JobChange, now: float, /) -> Job | None:
        """Change what people may change."""
        ...

    def move(self, job_id: str, from_states: Sequence[str], to_state: str, /, **fields: Any) -> bool:
        """Change the state where it is one of some states; return whether it was."""
        ...

    def note(self, job_id: str, /, **fields: Any) -> None:
        """Change columns other than the state."""
        ...

    def reorder(self, job_id: str, /, *, before: str | None) -> None:
        """Place a job before another one of the queue, or last."""
        ...

    def dependents(self, job_id: str, /) -> list[Job]:
        """Return the jobs that depend on a job."""
        ...

    def delete(self, job_id: str, /) -> object:
        """Delete a job and all that is known of it; what it returns is not looked at."""
        ...


class EventRows(Protocol):
    """What the events of jobs say."""

    def take(self, job_id: str, offset: int, next_offset: int, events: Sequence[Event], /) -> bool:
        """Take events in one transaction with the offset behind them; False where ``offset`` is not the stored one."""
        ...

    def reset(self, job_id: str, /) -> None:
        """Forget all events of a job, its offset with them."""
        ...

    def lose_attempt(self, job_id: str, reason: str, /) -> None:
        """Note that the newest attempt ended without a word, if it did."""
        ...


class JobStore(Protocol):
    """The store, as far as the jobs need it."""

    @property
    def jobs(self) -> JobRows:
        """The jobs."""
        ...

    @property
    def events(self) -> EventRows:
        """What their events say."""
        ...
