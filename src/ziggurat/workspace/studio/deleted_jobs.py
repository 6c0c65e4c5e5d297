"""Deleted jobs of a studio: listed, put back as they were, and removed for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ziggurat.entities import Job
from ziggurat.errors import UsageError
from ziggurat.jobs import Supervisor
from ziggurat.store import JobOnDisk, Store

__all__ = ["DeletedJob", "DeletedJobs"]

_NAMESAKES: Final = 5


@dataclass(frozen=True, kw_only=True)
class DeletedJob:
    """A job that can be restored.

    Args:
        id: of the job.
        kind: of the job.
        name: of the job.
        deleted: when, in seconds since 1970.
    """

    id: str
    kind: str
    name: str
    deleted: float


class DeletedJobs:
    """The trash of a studio.

    Args:
        store: takes in what is put back.
        supervisor: moves folders out of the trash.
        read_job: reads the folder of a job that is put back.
    """

    def __init__(self, store: Store, supervisor: Supervisor, read_job: Callable[[Path], JobOnDisk]) -> None:
        self._store = store
        self._supervisor = supervisor
        self._read_job = read_job

    def list(self) -> list[DeletedJob]:
        """Return the deleted jobs that can be restored, the newest first."""
        return [
            DeletedJob(id=each.job_id, kind=each.kind, name=each.name, deleted=each.since)
            for each in self._supervisor.trash()
        ]

    def restore(self, text: str) -> Job:
        """Put a deleted job back as it was, and return it.

        Args:
            text: its id or, where no other deleted job has it, its name.

        Raises:
            UsageError: where several deleted jobs have the name.
            JobError: where it is removed from the disk, or something else lies where it lay.
            StorageError: where its folder cannot be moved.
        """
        folder = self._supervisor.restore(self._id_of(text))
        on_disk = self._read_job(folder)
        if on_disk.state == "queued":  # it never began: to be put back must not mean to be started
            on_disk = replace(on_disk, state="stopped", fields={**on_disk.fields, "reason": "restored"})
        self._store.take_in(on_disk)
        self._supervisor.hub.publish("jobs", "added", folder.name)
        return self._store.jobs.get(folder.name)

    def remove(self, text: str) -> None:
        """Remove a deleted job from the disk.

        Args:
            text: as for ``restore``.

        Raises:
            UsageError: where several deleted jobs have the name.
            JobError: where it is not deleted, or is removed already.
        """
        self._supervisor.remove_now(self._id_of(text))

    def _id_of(self, text: str) -> str:
        """Return the id of the deleted job of an id or a name; the text itself where there is none."""
        found = self.list()
        if any(each.id == text for each in found):
            return text
        named = [each.id for each in found if each.name == text]
        if len(named) > 1:
            raise UsageError(
                f"{len(named)} deleted jobs are called `{text}`.",
                received=", ".join(named[:_NAMESAKES]),
                advice="Give the id of one of them.",
                details={"name": text, "ids": named},
            )
        return named[0] if named else text
