"""Deletion of jobs: into the trash, back out of it, and off the disk. What is in it: ``ziggurat.entities.trash``."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Final

from ziggurat.entities import ENDED_STATES, Job
from ziggurat.entities.trash import Discarded, Trash
from ziggurat.errors import JobError, MissingJobError, ZigguratError
from ziggurat.jobs.disk import Retention, apply_retention, what_to_empty
from ziggurat.jobs.job_file import close_attempt
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.reasons import job_text
from ziggurat.jobs.state_machine import JobTransitions, next_state
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder, lies_in

__all__ = ["Removal"]


_LOG: Final = logging.getLogger(__name__)

_KILL_PATIENCE_S: Final = 10.0
_TRASH_EVERY_S: Final = 60.0


class Removal:
    """Deletes and tidies.

    Args:
        store: where the jobs are.
        changes: changes states.
        monitor: knows who is alive.
        workspace: has the trash.
        retention: what is kept.
        lock: held while the requested state of a job changes.
    """

    def __init__(
        self,
        store: JobStore,
        changes: JobTransitions,
        monitor: WorkerMonitor,
        workspace: Path,
        *,
        retention: Retention,
        lock: threading.RLock,
    ) -> None:
        self._store = store
        self._changes = changes
        self._monitor = monitor
        self._retention = retention
        self._lock = lock
        self._workspace = workspace
        self._trash = Trash(workspace)
        self._emptied_at = float("-inf")
        self._emptier: threading.Thread | None = None

    def delete(self, job_id: str, *, force: bool, now: float) -> None:
        """Delete a job and its folder; see ``Supervisor.delete``."""
        with self._lock:
            job = self._store.jobs.get(job_id)
            self._refuse_in_use(job, force=force)
            if job.is_active and force:
                job = self._killed(job_id, now)
            next_state(job.state, "delete", job_id)
            if force and os.path.lexists(job.folder) and not lies_in(Path(job.folder), self._workspace):
                _LOG.warning(
                    "job %s is not listed any more; %s is outside of the workspace, and stays", job_id, job.folder
                )
            else:
                self._refuse_outside(job)
                self._trash.discard(Path(job.folder), job_id, now, kind=job.kind, name=job.name)
            self._store.jobs.delete(job_id)
            self._monitor.forget(job_id)
        self._emptied_at = float("-inf")

    def finish(self) -> None:
        """Delete from the store the jobs whose folders are in the trash already, after a kill in between."""
        for discarded in self._trash.content():
            job = self._store.jobs.find(discarded.id) if discarded.is_job else None
            if job is not None and not Path(job.folder).exists():
                self._store.jobs.delete(job.id)
                self._changes.tell("deleted", job.id)

    def restore(self, job_id: str) -> Path:
        """Move the folder of a deleted job back and return it; see ``Supervisor.restore``."""
        with self._lock:
            if self._store.jobs.find(job_id) is not None:
                raise JobError(f"The job {job_id} is not deleted.", advice="Look at it in the list of jobs.")
            newest = next((each for each in self.trash() if each.id == job_id), None)
            if newest is None or newest.place is None or not self._trash.restore(newest):
                raise _not_in_trash(job_id)
            return newest.place

    def trash(self) -> list[Discarded]:
        """Return the jobs that can be restored, the newest first."""
        return [each for each in reversed(self._trash.content()) if each.is_job and each.can_be_restored]

    def remove_now(self, job_id: str) -> None:
        """Remove a deleted job from the disk; see ``Supervisor.remove_now``."""
        if not self._trash.remove(*(each for each in self._trash.content() if each.is_job and each.id == job_id)):
            raise _not_in_trash(job_id)

    def empty_trash(self, now: float, *, disk_is_low: bool = False) -> None:
        """Remove from the disk what was deleted long ago, in a thread of its own: it may be much."""
        is_busy = self._emptier is not None and self._emptier.is_alive()
        if is_busy or now - self._emptied_at < _TRASH_EVERY_S:
            return
        self._emptied_at = now
        older_than = what_to_empty(now, self._retention, disk_is_low=disk_is_low)
        self._emptier = threading.Thread(target=self._trash.empty, args=(older_than,), name="trash", daemon=True)
        self._emptier.start()

    def tidy(self, now: float) -> dict[str, list[str]]:
        """Remove the checkpoints of ended jobs that need not be kept; return their names by job.

        What cannot be tidied is left as it is.

        Args:
            now: seconds since 1970.
        """
        removed: dict[str, list[str]] = {}
        if self._retention.keep_last is None:
            return removed
        for found in self._store.jobs.in_states(ENDED_STATES):
            with self._lock:  # so that it cannot be started meanwhile
                job = self._store.jobs.find(found.id)
                if job is None or job.state not in ENDED_STATES or not self.owns(Path(job.folder)):
                    continue
                try:
                    names = apply_retention(JobFolder(Path(job.folder)), self._retention, now)
                except (ZigguratError, OSError, ValueError) as error:
                    _LOG.warning("the checkpoints of job %s cannot be tidied: %s", job.id, error)
                    continue
            if names:
                removed[job.id] = names
                self._monitor.read_on(job, now)
        return removed

    def owns(self, folder: Path) -> bool:
        """Return whether a job folder, and not only a link to it, is in the workspace."""
        return lies_in(Path(os.path.realpath(folder)), self._workspace)

    def close(self) -> None:
        """Wait until nothing is removed any more."""
        if self._emptier is not None:
            self._emptier.join()

    def _killed(self, job_id: str, now: float) -> Job:
        """End the worker of a job at once, and return the job after it. The tick may note its end meanwhile."""
        reason = "deleted by force"
        while (job := self._store.jobs.get(job_id)).is_active:
            if self._changes.apply(job, "stop", paused=False, reason=reason):
                self._monitor.kill(job, reason)
                self._wait_for_end(job)
                after = self._store.jobs.get(job_id)
                if after.is_active:
                    close_attempt(Path(job.folder))
                    self._changes.apply(after, "end_stopped", reason=reason, ended=now, pid=None)
        return job

    def _wait_for_end(self, job: Job) -> None:
        last = time.monotonic() + _KILL_PATIENCE_S
        while self._monitor.is_alive(job):
            if time.monotonic() > last:
                raise JobError(
                    "A worker that is killed ends.",
                    received=f"process {job.pid} of job {job.id} is still there: a disk or a driver holds it",
                    advice="Delete the job again later.",
                )
            time.sleep(0.01)

    def _refuse_outside(self, job: Job) -> None:
        if os.path.lexists(job.folder) and not lies_in(Path(job.folder), self._workspace):
            raise JobError(
                "Only folders of the workspace are deleted.",
                received=f"the {job_text(job)} in {job.folder}, outside of {self._workspace}",
                advice=f"Take it out of the list by `ziggurat job delete {job.id} --force`; its folder stays.",
                details={"job": job.id, "folder": job.folder},
            )

    def _refuse_in_use(self, job: Job, *, force: bool) -> None:
        users = self._store.jobs.dependents(job.id)
        busy = [each for each in users if each.state in ("queued", "running", "stopping")]
        if not users or (force and not busy):
            return
        named = busy if force else users
        names = ", ".join(f"{job_text(each)} ({each.state})" for each in named[:5])
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        raise JobError(
            f"What other jobs use is kept: the {job_text(job)} cannot be deleted.",
            received=f"it is used by {names}{more}",
            advice="Delete those first." if not force else "Stop those first.",
            details={"job": job.id, "used_by": [each.id for each in named]},
        )


def _not_in_trash(job_id: str) -> MissingJobError:
    """Return the error for a job that cannot be restored."""
    return MissingJobError(
        "There is no such deleted job.",
        received=job_id,
        advice="List what can be restored with: ziggurat trash list. The rest is removed from the disk.",
    )
