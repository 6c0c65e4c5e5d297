"""Owns what a person can do with any job: find, look, stop, pause, resume, delete, reorder, describe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Attempt, Checkpoint, Curve, Job, JobChange, JobFilter, JobPage, NewJob
from ziggurat.entities.whole_files import write_whole
from ziggurat.errors import ConfigurationError, JobError
from ziggurat.jobs.job_file import record_of, write_job_file
from ziggurat.layout import JobFolder
from ziggurat.workspace.checkpoint_files import remove_checkpoint
from ziggurat.workspace.studio.log_parts import LogPart, read_log, stream_log

__all__ = ["Jobs"]

_LOG_BYTES: Final = 64 << 10


class Jobs:
    """Jobs of every kind.

    Args:
        store: what is known of them.
        supervisor: carries out what changes their state.
        clock: seconds since 1970.
        before_delete: called with the id of a job whose folder is about to go, such as to end its TensorBoard.
    """

    def __init__(
        self,
        store: Any,
        supervisor: Any,
        clock: Callable[[], float],
        before_delete: Callable[[str], None] = lambda _job_id: None,
    ) -> None:
        self._store = store
        self._supervisor = supervisor
        self._clock = clock
        self._before_delete = before_delete
        self._refuse_deletion: Callable[[str, str], None] = lambda _job_id, _checkpoint: None

    def protect(self, refuse_deletion: Callable[[str, str], None]) -> None:
        """Ask before a job, or a checkpoint of one, is deleted.

        Args:
            refuse_deletion: called with the id and the checkpoint's name (empty: the whole job); raises where it is
                to be kept.
        """
        self._refuse_deletion = refuse_deletion

    # ---- looking

    def page(self, chosen: JobFilter) -> JobPage:
        """Return some of the jobs that a filter leaves."""
        page = self._store.jobs.page(chosen)
        return replace(page, jobs=type(page.jobs)(self._with_problems(page.jobs)))

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            JobError: where there is none of that id.
        """
        return self._with_problems([self._store.jobs.get(job_id)])[0]

    def dependents(self, job_id: str) -> list[Job]:
        """Return the jobs that need a job, such as the evaluations of a training.

        Raises:
            JobError: where there is none of that id.
        """
        return self._store.jobs.dependents(self.get(job_id).id)

    def some(self, job_ids: Iterable[str]) -> dict[str, Job]:
        """Return id → job; those that are not there are left out."""
        return {job.id: job for job in self._store.jobs.some(job_ids)}

    def facts(self, job_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return id of a data set → what was noted of it; empty where nobody did."""
        return self._store.datasets.facts(job_ids)

    def note_facts(self, job_id: str, facts: Mapping[str, Any]) -> None:
        """Note what a data set holds, as JSON values: lists are filtered and sorted by it."""
        self._store.jobs.note(job_id, facts=facts)

    def dependent_counts(self, job_ids: Iterable[str]) -> dict[str, int]:
        """Return id → how many jobs need it; those that nobody needs are left out."""
        return self._store.jobs.dependent_counts(job_ids)

    def kind_counts(self) -> dict[str, int]:
        """Return kind → jobs; kinds without any are left out."""
        return self._store.jobs.kind_counts()

    def counts(self) -> dict[str, int]:
        """Return state → jobs."""
        return self._store.jobs.counts()

    def queue(self, limit: int | None = None) -> list[Job]:
        """Return the jobs that wait, so many at most, the next one first; each says why it waits."""
        waiting = self._store.jobs.in_states(("queued",), limit)
        return sorted(waiting, key=lambda job: (-job.priority, job.position, job.created))

    def running(self) -> list[Job]:
        """Return the jobs that a worker is at, the oldest first."""
        active = self._with_problems(self._store.jobs.in_states(("running", "stopping")))
        return sorted(active, key=lambda job: job.started or 0)

    def expected_start(self, job_id: str) -> float | None:
        """Return when a job of the queue will start, in seconds since 1970; None while nobody can tell."""
        waiting = self._supervisor.waiting().get(job_id)
        return waiting.expected_start if waiting is not None else None

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts of a job, the oldest first."""
        return self._store.curves.attempts(self.get(job_id).id)

    def messages(self, job_id: str, *, levels: Sequence[str] = (), limit: int = 200) -> list[Any]:
        """Return the newest of what the worker said to people, the oldest of them first.

        Args:
            job_id: of the job.
            levels: only of these (``info``, ``warning``, ``error``); empty for all.
            limit: how many at most.

        Returns:
            ``time`` (seconds since 1970), ``level``, ``text`` and ``step`` of each.
        """
        return self._store.curves.messages(job_id, levels=levels, limit=limit)

    def _with_problems(self, jobs: Iterable[Job]) -> list[Job]:
        """Return jobs with what goes wrong with them at the moment, such as an end that a full disk cannot take."""
        problems = self._supervisor.problems()
        return [replace(job, reason=problems[job.id]) if job.is_active and job.id in problems else job for job in jobs]

    def log(self, job_id: str, *, at_most_bytes: int = _LOG_BYTES, before: int | None = None) -> LogPart:
        """Return the end of the worker's log, or the part of it that ends at the offset ``before``."""
        return read_log(JobFolder(Path(self.get(job_id).folder)).log, at_most_bytes, before)

    def whole_log(self, job_id: str) -> Iterator[bytes]:
        """Return the worker's log as it is now, block by block."""
        return stream_log(JobFolder(Path(self.get(job_id).folder)).log)

    # ---- curves and checkpoints

    def tags(self, job_id: str) -> list[str]:
        """Return the names of a job's curves."""
        return self._store.curves.tags(job_id)

    def curve(self, job_id: str, tag: str, *, since_step: int = -1, max_points: int = 2000) -> Curve:
        """Return a curve, thinned to so many points; see ``curves``."""
        return self.curves(job_id, (tag,), since_step=since_step, max_points=max_points)[0]

    def curves(
        self, job_id: str, tags: Sequence[str] = (), *, since_step: int = -1, max_points: int = 2000
    ) -> list[Curve]:
        """Return curves, each thinned to so many points; minima and maxima stay.

        Args:
            job_id: of the job.
            tags: names of the curves; empty for all.
            since_step: only points after this step.
            max_points: how many of each at most.
        """
        return self._store.curves.some(job_id, tags, since_step=since_step, max_points=max_points)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Return the checkpoints of a job that are on the disk, the oldest step first."""
        place = JobFolder(Path(self.get(job_id).folder)).checkpoints
        return [each for each in self._store.curves.checkpoints(job_id) if (place / each.name).is_dir()]

    def remove_checkpoint(self, job_id: str, name: str) -> None:
        """Remove a checkpoint of a job that is not running.

        Raises:
            JobError: where a worker is at the job.
            CheckpointError: where it is not there, or a given name points at it.
        """
        job = self.get(job_id)
        if job.is_active:
            raise JobError(
                "Checkpoints are removed while no worker is at the job.",
                received=f"{job_id}, which is {job.state}",
                advice="Stop or pause it first.",
            )
        self._refuse_deletion(job_id, name)
        remove_checkpoint(JobFolder(Path(job.folder)), name)

    # ---- changing

    def change(self, job_id: str, change: JobChange) -> Job:
        """Change name, notes, project, tags or priority."""
        self._supervisor.change(job_id, change)
        return self.get(job_id)

    def take_in(self, new: NewJob, facts: Mapping[str, Any]) -> Job:
        """Take in a data set that is done already, such as a version.

        Args:
            new: its folder is complete.
            facts: what it holds, as JSON values.
        """
        write_job_file(Path(new.folder), record_of(new))
        job = self._store.datasets.add_finished(new, facts)
        self._supervisor.hub.publish("jobs", "added", job.id)
        return job

    def stop(self, job_id: str, who: str = "", *, now: bool = False) -> Job:
        """Ask the worker to save and end, or take the job out of the queue.

        Args:
            job_id: of the job.
            who: name of who asks.
            now: kill the worker, and all that it started; what is in no checkpoint is lost.
        """
        done = "stopped by force" if now else "stopped"
        self._supervisor.stop(job_id, f"{done} by {who}" if who else done, at_once=now)
        return self.get(job_id)

    def pause(self, job_id: str, who: str = "") -> Job:
        """Save, and free the device; ``resume`` goes on at the exact step."""
        self._supervisor.pause(job_id, f"paused by {who}" if who else "paused")
        return self.get(job_id)

    def resume(self, job_id: str) -> Job:
        """Put a job that was stopped, paused or failed back into the queue."""
        self._supervisor.resume(job_id)
        return self.get(job_id)

    def retry(self, job_id: str) -> Job:
        """Put a job that failed back into the queue."""
        self._supervisor.retry(job_id)
        return self.get(job_id)

    def delete(self, job_id: str, *, force: bool = False) -> None:
        """Delete a job and its folder.

        Raises:
            JobError: where it runs (unless by force), another job needs it, or it is published; the message says
                which.
        """
        self._refuse_deletion(job_id, "")
        self._before_delete(self.get(job_id).id)
        self._supervisor.delete(job_id, force=force)

    def reorder(self, job_id: str, before: str | None = None) -> None:
        """Place a job of the queue before another one, or last."""
        self._supervisor.reorder(job_id, before=before)

    def hyperparameters(self, job_id: str) -> dict[str, float]:
        """Return the hyperparameters that people set while a training ran; they hold until they are unset."""
        lines = _lines(JobFolder(Path(self.get(job_id).folder)).hyperparameters)
        return {name: value for name, text in lines if (value := _number(text.partition("#")[0])) is not None}

    def set_hyperparameter(self, job_id: str, name: str, value: float) -> None:
        """Set a hyperparameter of a running training; it acts within a tenth of an epoch.

        Raises:
            JobError: where the job does not run.
            ConfigurationError: where the name is none.
        """
        job = self.get(job_id)
        if not job.is_active or job.kind != "train":
            raise JobError("Hyperparameters are set while a training runs.", received=f"{job_id} is {job.state}")
        if not name.isidentifier():
            raise ConfigurationError("A hyperparameter has a name.", received=repr(name))
        path = JobFolder(Path(job.folder)).hyperparameters
        known = {**dict(_lines(path)), name: repr(float(value))}
        write_whole(path, "".join(f"{each}: {text}\n" for each, text in known.items()), "The hyperparameter")

    def unset_hyperparameter(self, job_id: str, name: str) -> None:
        """Give a hyperparameter that a person set back to its schedule; it acts within a tenth of an epoch.

        Raises:
            JobError: where the job does not run, or nobody set it.
        """
        job = self.get(job_id)
        if not job.is_active or job.kind != "train":
            raise JobError(
                "A hyperparameter goes back to its schedule while a training runs.",
                received=f"{job_id} is {job.state}",
                advice="Ask again once it runs; a clone begins with its schedule.",
            )
        path = JobFolder(Path(job.folder)).hyperparameters
        known = dict(_lines(path))
        if name not in known:
            raise JobError(
                "Only a hyperparameter that was set by hand goes back to its schedule.",
                received=f"`{name[:50]}` of {job_id}, which nobody set",
                advice=f"Set by hand are: {', '.join(known)}." if known else "There is nothing to do: it follows it.",
            )
        rest = "".join(f"{each}: {text}\n" for each, text in known.items() if each != name)
        write_whole(path, rest, "The hyperparameter")

    def compare(self, job_ids: Sequence[str]) -> dict[str, Any]:
        """Return where the specs of jobs differ, and what their curves came to.

        Returns:
            ``jobs``: id and name; ``differences``: path of a field → value of each job; ``scalars``: tag → last,
            minimum and maximum of each job, None where it has no such curve.
        """
        found = {job.id: job for job in self._store.jobs.some(job_ids)}
        jobs = [found.get(job_id) or self.get(job_id) for job_id in job_ids]
        flat = [dict(_flat(job.spec)) for job in jobs]
        paths = sorted({path for each in flat for path in each})
        tags = sorted({tag for job in jobs for tag in job.scalars})
        return {
            "jobs": [{"id": job.id, "name": job.name, "state": job.state} for job in jobs],
            "differences": {
                path: [each.get(path) for each in flat]
                for path in paths
                if len({repr(each.get(path)) for each in flat}) > 1
            },
            "scalars": {tag: [_summary(job, tag) for job in jobs] for tag in tags},
        }


def _lines(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        return []
    pairs = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines())
    return [(name.strip(), text.strip()) for name, colon, text in pairs if colon]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # somebody else wrote into the file
        return None


def _flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [pair for name, part in value.items() for pair in _flat(part, f"{path}.{name}" if path else name)]


def _summary(job: Job, tag: str) -> dict[str, float] | None:
    found = job.scalars.get(tag)
    return None if found is None else {"last": found.last, "minimum": found.minimum, "maximum": found.maximum}
