"""Deletion of jobs: into the trash, back out of it, and off the disk."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.entities import ENDED_STATES, Job
from ziggurat.errors import JobError, StorageError, ZigguratError
from ziggurat.jobs.disk import Retention, apply_retention, what_to_empty
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.reasons import job_text
from ziggurat.jobs.state_machine import JobTransitions, next_state
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder, lies_in, present_path

__all__ = [
    "Removal",
    "Trash",
]


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
                self._trash.discard(Path(job.folder), job_id, now)
            self._store.jobs.delete(job_id)
            self._monitor.forget(job_id)
        self._emptied_at = float("-inf")

    def finish(self) -> None:
        """Delete from the store the jobs whose folders are in the trash already, after a kill in between."""
        for discarded in self._trash.content():
            job = self._store.jobs.find(discarded.job_id)
            if job is not None and not Path(job.folder).exists():
                self._store.jobs.delete(job.id)
                self._changes.tell("deleted", job.id)

    def empty_trash(self, now: float) -> None:
        """Remove from the disk what was deleted, in a thread of its own: it may be much."""
        is_busy = self._emptier is not None and self._emptier.is_alive()
        if is_busy or now - self._emptied_at < _TRASH_EVERY_S:
            return
        self._emptied_at = now
        older_than = what_to_empty(now, self._retention)
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


TRASH_FOLDER: Final = ".trash"
"""Its name in the workspace."""

_HIDDEN: Final = f"{TRASH_FOLDER}-"
"""Begins the name of a discarded folder that stays on its own disk."""


@dataclass(frozen=True)
class Discarded:
    """A folder in the trash.

    Args:
        path: where it lies now.
        job_id: of the job that it was.
        since: when it was discarded, in seconds since 1970.
    """

    path: Path
    job_id: str
    since: float


class Trash:
    """The folder of deleted jobs in a workspace. A folder is there under ``JOB.SECONDS``.

    Args:
        workspace: the folder of everything; nothing outside of it is ever removed.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.folder = workspace / TRASH_FOLDER
        self._emptying = threading.Lock()

    def discard(self, path: Path, job_id: str, now: float) -> Discarded | None:
        """Move a job folder into the trash; None where it is not there.

        A folder on another disk stays there, under a hidden name.

        Raises:
            JobError: where it is none of the workspace.
            StorageError: where it cannot be moved.
        """
        if not os.path.lexists(path):
            return None
        if not lies_in(path, self._workspace):
            raise JobError(
                "Only folders of the workspace are deleted.",
                received=f"{path}, outside of {self._workspace}",
                advice="Delete it by hand if it is not needed any more.",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                return _renamed(path, self.folder / f"{job_id}.{int(now)}", job_id, now)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return self._discard_in_place(path, job_id, now)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"A job that is deleted is moved from {path} to {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Mend the rights of both folders, then delete it again.",
            ) from error

    def _discard_in_place(self, path: Path, job_id: str, now: float) -> Discarded:
        """Rename it on its own disk, and leave a link in the trash, so that it is found when the trash is emptied."""
        name = f"{job_id}.{int(now)}"
        hidden = path.absolute().with_name(f"{_HIDDEN}{name}")
        link = self.folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(hidden, self.folder.absolute()))  # it moves with the workspace
        path.rename(hidden)
        return Discarded(link, job_id, float(int(now)))

    def content(self) -> list[Discarded]:
        """Return what is in the trash, oldest first."""
        return sorted(self._found(), key=lambda each: (each.since, each.path))

    def empty(self, older_than: float) -> list[str]:
        """Remove from the disk what was discarded before a moment; return the ids. Others that empty it are waited for.

        What cannot be removed stays for the next time.
        """
        with self._emptying:
            removed = []
            for each in self.content():
                if each.since <= older_than:
                    removed += [each.job_id] if _is_removed(each.path, self._workspace) else []
            return removed

    def _found(self) -> Iterator[Discarded]:
        try:
            paths = list(self.folder.iterdir())
        except OSError:
            return
        for path in paths:
            job_id, _, since = path.name.rpartition(".")  # an id may have dots
            since = since.partition("-")[0]
            if job_id and since.isdecimal():
                yield Discarded(path, job_id, float(since))


def _is_removed(path: Path, workspace: Path) -> bool:
    """Remove a folder of the trash, or what a link of ours points at; return whether it is gone."""
    if path.is_symlink():
        hidden = Path(present_path(os.path.join(os.path.realpath(path.parent), path.readlink()), workspace))
        is_ours = hidden.name.startswith(_HIDDEN) and lies_in(hidden, workspace)
        if is_ours:
            shutil.rmtree(hidden, ignore_errors=True)
        if not os.path.lexists(hidden) or not is_ours:
            path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)


def _renamed(path: Path, to: Path, job_id: str, now: float) -> Discarded:
    target, number = to, 0
    while os.path.lexists(target):
        number += 1
        target = to.with_name(f"{to.name}-{number}")
    path.rename(target)
    return Discarded(target, job_id, float(int(now)))
