"""Where jobs are found: in folders without a studio, or in the database of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ziggurat.layout import JobFolder
from ziggurat.workspace.job_status import JobStatus, job_status, open_job

__all__ = ["FoundJob", "JobFolders", "JobRepository"]


class FoundJob(Protocol):
    """A job, as far as every repository knows it."""

    @property
    def state(self) -> str:
        """A name in ``JOB_STATES``."""
        ...

    @property
    def is_active(self) -> bool:
        """Whether a worker is at it."""
        ...


class JobRepository(Protocol):
    """Jobs by their names; ``JobFolders`` and ``ziggurat.workspace.studio.jobs.Jobs`` are repositories."""

    def get(self, name: str, /) -> FoundJob:
        """Return a job as it is now; JobError where there is none of that name."""
        ...

    def folder(self, name: str, /) -> JobFolder:
        """Return the folder of a job; JobError where there is none of that name."""
        ...

    def check_removable(self, name: str, checkpoint: str, /) -> None:
        """Raise JobError where a checkpoint of a job must stay, whatever its worker does."""
        ...


class JobFolders:
    """Jobs by the paths of their folders; no studio is needed.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def get(self, name: str) -> JobStatus:
        """Return how a job is, from its files alone.

        Args:
            name: path of the job folder.

        Raises:
            JobError: where there is no job.
        """
        return job_status(Path(name), self._clock())

    def folder(self, name: str) -> JobFolder:
        """Return the job folder at a path.

        Raises:
            JobError: where there is none.
        """
        return open_job(Path(name))

    def check_removable(self, name: str, checkpoint: str) -> None:
        """Accept every checkpoint: nothing but its own folder knows a job without a studio."""
