"""Deletion of jobs: into the trash, back out of it, and off the disk."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import ENDED_STATES, Job
from ziggurat.errors import JobError, MissingJobError, StorageError, ZigguratError
from ziggurat.jobs.disk import Retention, apply_retention, what_to_empty
from ziggurat.jobs.ports import JobStore
from ziggurat.jobs.reasons import job_text
from ziggurat.jobs.state_machine import JobTransitions, next_state
from ziggurat.jobs.worker_monitor import WorkerMonitor
from ziggurat.layout import JobFolder, lies_in, present_path

__all__ = ["Discarded", "Removal", "Trash"]


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
            job = self._store.jobs.find(discarded.job_id)
            if job is not None and not Path(job.folder).exists():
                self._store.jobs.delete(job.id)
                self._changes.tell("deleted", job.id)

    def restore(self, job_id: str) -> Path:
        """Move the folder of a deleted job back and return it; see ``Supervisor.restore``."""
        with self._lock:
            if self._store.jobs.find(job_id) is not None:
                raise JobError(f"The job {job_id} is not deleted.", advice="Look at it in the list of jobs.")
            return self._trash.restore(job_id)

    def trash(self) -> list[Discarded]:
        """Return what can be restored, the newest first."""
        return [each for each in reversed(self._trash.content()) if each.place is not None]

    def remove_now(self, job_id: str) -> None:
        """Remove a deleted job from the disk; see ``Supervisor.remove_now``."""
        if not self._trash.remove(job_id):
            raise not_in_trash(job_id)

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
        kind: of the job; empty where nothing is known of it.
        name: of the job.
        place: where it lay; None where nothing is known of it, so that it cannot be restored.
    """

    path: Path
    job_id: str
    since: float
    kind: str = ""
    name: str = ""
    place: Path | None = None


class Trash:
    """The folder of deleted jobs in a workspace.

    A folder is there under ``JOB.SECONDS``, beside ``JOB.SECONDS.json``, which says what it was and where it lay.

    Args:
        workspace: the folder of everything; nothing outside of it is ever removed.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.folder = workspace / TRASH_FOLDER
        self._emptying = threading.Lock()

    def discard(self, path: Path, job_id: str, now: float, *, kind: str = "", name: str = "") -> Discarded | None:
        """Move a job folder into the trash; None where it is not there.

        A folder on another disk stays there, under a hidden name.

        Args:
            path: of the folder.
            job_id: of the job.
            now: seconds since 1970.
            kind: of the job, for people who look into the trash.
            name: of the job, likewise.

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
            target = _free(self.folder / f"{job_id}.{int(now)}")
            facts = {"folder": os.path.relpath(path.absolute(), self._workspace.absolute()), "kind": kind, "name": name}
            # Before it is moved: what cannot be told where it belongs could not be restored. Deleting must work on a
            # full disk, where nothing stays in the trash anyhow.
            with suppress(StorageError):
                atomic_write_text(_label(target), json.dumps(facts), "What a deleted job was")
            try:
                path.rename(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    _label(target).unlink(missing_ok=True)
                    raise
                self._discard_in_place(path, target)
            return Discarded(target, job_id, float(int(now)), kind, name, path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"A job that is deleted is moved from {path} to {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Mend the rights of both folders, then delete it again.",
            ) from error

    def _discard_in_place(self, path: Path, link: Path) -> None:
        """Rename it on its own disk, and leave a link in the trash, so that it is found when the trash is emptied."""
        hidden = path.absolute().with_name(f"{_HIDDEN}{link.name}")
        link.symlink_to(os.path.relpath(hidden, self.folder.absolute()))  # it moves with the workspace
        path.rename(hidden)

    def restore(self, job_id: str) -> Path:
        """Move the newest folder of a job back to where it lay, and return that place.

        Raises:
            JobError: where it is not in the trash, or something else lies there now.
            StorageError: where it cannot be moved.
        """
        with self._emptying:
            found = [each for each in self.content() if each.job_id == job_id and each.place is not None]
            if not found:
                raise not_in_trash(job_id)
            newest, place = found[-1], found[-1].place
            assert place is not None
            if os.path.lexists(place):
                raise JobError(
                    f"Something else lies where the job {job_id} lay.",
                    received=str(place),
                    advice="Move it away, then restore the job again.",
                )
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                _present(newest.path, self._workspace).rename(place)
                if newest.path.is_symlink():
                    newest.path.unlink()
                _label(newest.path).unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(
                    f"The folder of the job {job_id} could not be moved back to {place}.",
                    received=f"{error.strerror} (errno {error.errno})",
                    advice="Mend the rights of the folder, then restore it again.",
                ) from error
            return place

    def remove(self, job_id: str) -> bool:
        """Remove all folders of a job from the disk now; return whether there was one."""
        with self._emptying:
            found = [each for each in self.content() if each.job_id == job_id]
            for each in found:
                _is_removed(each.path, self._workspace)
            return bool(found)

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
                yield Discarded(path, job_id, float(since), **self._facts(path))

    def _facts(self, path: Path) -> dict[str, Any]:
        try:
            facts = json.loads(_label(path).read_bytes())
            place = self._workspace / facts["folder"]
            known = {"kind": str(facts["kind"]), "name": str(facts["name"])}
        except (OSError, ValueError, KeyError, TypeError):  # an older version put it there
            return {}
        return {**known, "place": place} if lies_in(place, self._workspace) else known


def not_in_trash(job_id: str) -> MissingJobError:
    """Return the error for a job that cannot be restored."""
    return MissingJobError(
        "There is no such deleted job.",
        received=job_id,
        advice="List what can be restored with: ziggurat job trash. The rest is removed from the disk.",
    )


def _label(path: Path) -> Path:
    """Return the file that says what a folder of the trash was."""
    return path.with_name(f"{path.name}.json")


def _present(path: Path, workspace: Path) -> Path:
    """Return where a folder of the trash is: a link of ours points at it where it stayed on its own disk."""
    if not path.is_symlink():
        return path
    return Path(present_path(os.path.join(os.path.realpath(path.parent), path.readlink()), workspace))


def _is_removed(path: Path, workspace: Path) -> bool:
    """Remove a folder of the trash, or what a link of ours points at; return whether it is gone."""
    if path.is_symlink():
        hidden = _present(path, workspace)
        is_ours = hidden.name.startswith(_HIDDEN) and lies_in(hidden, workspace)
        if is_ours:
            shutil.rmtree(hidden, ignore_errors=True)
        if not os.path.lexists(hidden) or not is_ours:
            path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
    is_gone = not os.path.lexists(path)
    if is_gone:
        _label(path).unlink(missing_ok=True)
    return is_gone


def _free(path: Path) -> Path:
    """Return the path, or one with a number behind it that nothing has."""
    target, number = path, 0
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}-{number}")
    return target
