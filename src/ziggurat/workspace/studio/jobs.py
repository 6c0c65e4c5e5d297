"""Use cases of jobs of every kind: find, show, stop, resume, delete, reorder, edit, clone, one or many at once."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import (
    INTERVENTION,
    RUN_KINDS,
    Attempt,
    Checkpoint,
    Job,
    JobChange,
    JobFilter,
    JobPage,
    JobTotals,
    Mark,
    NodeResources,
    SweepSummary,
)
from ziggurat.entities.baselines import baselines_line
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.entities.pretrained_weights import WeightsUser
from ziggurat.errors import ConfigurationError, JobError, MissingJobError, UnknownNameError, UsageError, ZigguratError
from ziggurat.events import Message
from ziggurat.jobs import Supervisor
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.evaluation_results import evaluation_results
from ziggurat.workspace.studio.job_names import JobNames
from ziggurat.workspace.studio.job_timeline import (
    EarlyStoppingState,
    TimelineEvent,
    early_stopping_state,
    job_timeline,
)

__all__ = ["RECENT_S", "Jobs", "act_on_jobs", "chosen_ids", "clone_request"]

BULK_ACTIONS: Final = ("stop", "stop_now", "pause", "resume", "retry", "delete", "change")
RECENT_S: Final = 7 * 86400.0
"""What ended within so many seconds is recent: "failed this week"."""

_MINUTE_S: Final = 60.0
_PAGE: Final = 500
_MOST_MARKS: Final = 200
_MOST_USERS: Final = 200

_MOST_TIMES: Final = 10
_NAMESAKES: Final = 5
"""A learning rate set by hand that is larger than so many times the present one must be confirmed."""


class Jobs:
    """Jobs of every kind.

    Args:
        store: what is known of them.
        supervisor: carries out what changes their state.
        clock: seconds since 1970.
        before_delete: called with the id of a job whose folder is about to go, such as to end its TensorBoard.

    Attributes:
        names: names that filters may use.
    """

    def __init__(
        self,
        store: Store,
        supervisor: Supervisor,
        clock: Callable[[], float],
        before_delete: Callable[[str], None] = lambda _job_id: None,
    ) -> None:
        self.names = JobNames(store.names)
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
        """Return some of the jobs that a filter leaves.

        Raises:
            UsageError: where a condition has an unknown name, or a value that it cannot have.
        """
        page = self._store.jobs.page(self.names.checked(chosen))
        return replace(page, jobs=type(page.jobs)(self._with_problems(page.jobs)))

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            JobError: where there is none of that id.
        """
        return self._with_problems([self._store.jobs.get(job_id)])[0]

    def id_of(self, text: str, kinds: Collection[str] = ()) -> str:
        """Return the id of the job that has a text as its id or, where there is only one, as its name.

        Args:
            text: id or name.
            kinds: of the jobs that are looked for by name; empty for all.

        Returns:
            The text itself where no job has it.

        Raises:
            UsageError: where several jobs have the name; ``details["ids"]`` has the newest of them.
        """
        if not text or self._store.jobs.find(text) is not None:
            return text
        wanted = JobFilter(kinds=tuple(kinds), conditions=(("name", "=", text),), limit=_NAMESAKES)
        page = self._store.jobs.page(wanted)
        if page.total > 1:
            listed = ", ".join(f"{job.id} ({job.kind}, {job.state})" for job in page.jobs)
            more = f" and {page.total - len(page.jobs)} more" if page.total > len(page.jobs) else ""
            raise UsageError(
                f"{page.total} jobs are called `{text}`.",
                received=f"{listed}{more}",
                advice="Give the id of one of them.",
                details={"name": text, "ids": [job.id for job in page.jobs]},
            )
        return page.jobs[0].id if page.jobs else text

    def with_baselines(self, job_id: str) -> Job:
        """Return a job; a finished training has its result beside that of simple models, which its folder holds.

        Raises:
            JobError: where there is none of that id.
        """
        job = self.get(job_id)
        if job.kind != "train" or job.state != "done":
            return job
        return replace(job, baselines=baselines_line(JobFolder(Path(job.folder))))

    def of_kind(self, job_id: str, kind: str) -> Job:
        """Return a job of one kind, by its id or its name.

        Raises:
            UsageError: where several have the name.
            JobError: where there is none of that id, or it is of another kind.
        """
        job = self._store.jobs.get(self.id_of(job_id, (kind,)))
        if job.kind != kind:
            raise JobError(f"{job_id} is of kind {job.kind}; this needs a job of kind {kind}.")
        return job

    def folder(self, job_id: str) -> JobFolder:
        """Return the folder of a job.

        Raises:
            JobError: where there is none of that id.
        """
        return JobFolder(Path(self._store.jobs.place(job_id)[2]))

    def dependents(self, job_id: str) -> list[Job]:
        """Return the jobs that need a job, such as the evaluations of a training.

        Raises:
            JobError: where there is none of that id.
        """
        return self._store.jobs.dependents(self.get(job_id).id)

    def weights_users(self, reference: str, states: Sequence[str] = ()) -> list[WeightsUser]:
        """Return the trainings whose spec has a text as ``pretrained``, the newest first; 200 at most.

        Args:
            reference: such as ``weights:resnet18``.
            states: names in ``JOB_STATES``; none for all.
        """
        condition = ("pretrained", "=", reference)
        found = self._store.jobs.page(
            JobFilter(kinds=("train",), states=tuple(states), conditions=(condition,), limit=_MOST_USERS)
        ).jobs
        return [WeightsUser(id=job.id, name=job.name, state=job.state) for job in found]

    def some(self, job_ids: Iterable[str]) -> dict[str, Job]:
        """Return id → job; those that are not there are left out."""
        return {job.id: job for job in self._store.jobs.some(job_ids)}

    def dependent_counts(self, job_ids: Iterable[str]) -> dict[str, int]:
        """Return id → how many jobs need it; those that are not needed are left out."""
        return self._store.jobs.dependent_counts(job_ids)

    def counts(self) -> dict[str, int]:
        """Return state → jobs."""
        return self._store.jobs.counts()

    def sweeps(self, groups: Iterable[str]) -> dict[str, SweepSummary]:
        """Return id of a sweep → what its jobs came to."""
        return self._store.jobs.sweeps(groups)

    def totals(self) -> JobTotals:
        """Return how many jobs there are; ``failed`` counts the trainings that failed within the last 7 days."""
        full_minutes = self._clock() // _MINUTE_S * _MINUTE_S  # the store keeps its answer to a question
        return self._store.jobs.totals(full_minutes - RECENT_S)

    def results(self, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
        """Return id → result of each evaluation that is done; see ``evaluation_results``."""
        return evaluation_results(self._store, jobs)

    def queue(self, limit: int | None = None, offset: int = 0) -> list[Job]:
        """Return the jobs that wait, so many at most, the next one first; each says why it waits."""
        return self._store.jobs.in_states(("queued",), limit, offset)

    def queue_page(self, limit: int, offset: int = 0) -> JobPage:
        """Return part of the queue, and how many jobs wait in all."""
        return JobPage(total=self.counts()["queued"], jobs=tuple(self.queue(limit, offset)))

    def queue_order(self) -> list[tuple[str, int]]:
        """Return id and priority of each job that waits, the next one first."""
        return self._store.jobs.queue_order()

    def running(self) -> list[Job]:
        """Return the jobs that a worker is at, the oldest first."""
        active = self._with_problems(self._store.jobs.in_states(("running", "stopping")))
        return sorted(active, key=lambda job: job.started or 0)

    def nodes(self) -> Sequence[NodeResources]:
        """Return the machines that jobs can be put on, the studio's own first."""
        return self._supervisor.nodes()

    def node_problem(self) -> str:
        """Return what keeps further machines from being used; empty if nothing does."""
        return self._supervisor.node_problem()

    def expected_start(self, job_id: str) -> float | None:
        """Return when a job of the queue will start, in seconds since 1970; None while unknown."""
        waiting = self._supervisor.waiting().get(job_id)
        return waiting.expected_start if waiting is not None else None

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts of a job, the oldest first."""
        return self._store.curves.attempts(self.get(job_id).id)

    def messages(self, job_id: str, *, levels: Sequence[str] = (), limit: int = 200) -> list[Message]:
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

    # ---- checkpoints

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Return the checkpoints of a job that are on the disk, the oldest step first."""
        folder = self.folder(job_id)
        # The store knows every checkpoint that was written; the worker removes old ones without telling it.
        found = [each for each in self._store.curves.checkpoints(job_id) if (folder.checkpoints / each.name).is_dir()]
        best = best_checkpoint(folder) if found else None
        if best is None or best.basis == "newest":
            return found
        return [replace(each, best_by=best.why) if each.name == best.checkpoint.name else each for each in found]

    def marks(self, job_id: str) -> list[Mark]:
        """Return the moments that explain a job's curves by step: interventions, new attempts, a divergence."""
        said = self.messages(job_id, levels=(INTERVENTION,), limit=_MOST_MARKS)
        found = [Mark(kind=INTERVENTION, step=each.step, text=each.text, time=each.time) for each in said]
        for before, each in itertools.pairwise(self.attempts(job_id)):
            why = before.reason or before.outcome
            text = f"Attempt {each.number}" + (f" after: {why}" if why else "")
            found.append(Mark(kind="attempt", step=each.first_step, text=text, time=each.started))
        divergence = self.get(job_id).divergence
        if divergence is not None:
            found.append(Mark(kind="divergence", step=divergence.step, text=divergence.text))
        return sorted(found, key=lambda mark: mark.step)

    def timeline(self, job_id: str) -> list[TimelineEvent]:
        """Return the events of a training for people, oldest first; those with a number are flags on the charts."""
        return job_timeline(self._store, self.get(job_id))

    def early_stopping(self, job_id: str) -> EarlyStoppingState | None:
        """Return how early stopping of a training stands; None where it is off."""
        return early_stopping_state(self._store, self.get(job_id))

    def check_removable(self, job_id: str, checkpoint: str) -> None:
        """Refuse the removal of a checkpoint that must stay.

        Raises:
            JobError: where the job's folder is outside of the workspace, or the checkpoint is published.
        """
        job = self.get(job_id)
        if not self._supervisor.owns(Path(job.folder)):
            raise JobError(
                f"The folder of {job_id} is outside of the workspace, in {os.path.realpath(job.folder)}; "
                "checkpoints are removed in the workspace only.",
                advice="Remove it there: ziggurat checkpoint delete.",
            )
        self._refuse_deletion(job_id, checkpoint)

    # ---- changing

    def change(self, job_id: str, change: JobChange) -> Job:
        """Change name, notes, project, tags or priority."""
        self._supervisor.change(job_id, change)
        return self.get(job_id)

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
        """Save, and free the device; ``resume`` goes on with the same state and data."""
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

    def delete(self, job_id: str, *, force: bool = False, forever: bool = False) -> None:
        """Delete a job; it can be restored for some days.

        Args:
            job_id: of the job.
            force: end it first where it runs.
            forever: remove its folder from the disk at once.

        Raises:
            JobError: where it runs (unless by force), another job needs it, or it is published; the message says
                which.
        """
        self._refuse_deletion(job_id, "")
        self._before_delete(self.get(job_id).id)
        self._supervisor.delete(job_id, force=force)
        if forever:
            with suppress(MissingJobError):  # the trash was emptied meanwhile
                self._supervisor.remove_now(job_id)

    def reorder(self, job_id: str, before: str | None = None) -> None:
        """Place a job of the queue before another one, or last."""
        self._supervisor.reorder(job_id, before=before)

    def hyperparameters(self, job_id: str) -> dict[str, float]:
        """Return the hyperparameters that people set while a training ran; they hold until they are unset."""
        lines = _lines(self.folder(job_id).hyperparameters)
        return {name: value for name, text in lines if (value := _number(text.partition("#")[0])) is not None}

    def set_hyperparameter(self, job_id: str, name: str, value: float, *, force: bool = False) -> None:
        """Set a hyperparameter of a running training; it acts within a tenth of an epoch.

        Args:
            job_id: of the job.
            name: such as ``learning_rate``.
            value: the new value.
            force: set a learning rate of more than ten times the present one, too.

        Raises:
            JobError: where the job does not run.
            ConfigurationError: if the name is none, the value is no number for it, or the learning rate is that large
                and ``force`` is not given.
        """
        if name == "learning_rate" and not 0 < value < math.inf:
            raise ConfigurationError(
                f"{value:g} is no learning rate: it must be a number above 0.",
                advice="Typical rates are 0.0001 to 0.1.",
                details={"field": name},
            )
        job = self.get(job_id)
        if not job.is_active or job.kind not in RUN_KINDS:
            raise JobError(f"{job_id} is {job.state}; hyperparameters are set while a training runs.")
        if not name.isidentifier():
            raise ConfigurationError(f"{name!r} is not the name of a hyperparameter.")
        path = JobFolder(Path(job.folder)).hyperparameters
        if name == "learning_rate" and not force:
            _check_rate(self.hyperparameters(job_id).get(name), job, value)
        known = {**dict(_lines(path)), name: repr(float(value))}
        atomic_write_text(path, "".join(f"{each}: {text}\n" for each, text in known.items()), "The hyperparameter")

    def unset_hyperparameter(self, job_id: str, name: str) -> None:
        """Give a hyperparameter that a person set back to its schedule; it acts within a tenth of an epoch.

        Raises:
            JobError: if the job does not run, or it was not set.
        """
        job = self.get(job_id)
        if not job.is_active or job.kind not in RUN_KINDS:
            raise JobError(
                f"{job_id} is {job.state}; a hyperparameter goes back to its schedule while a training runs.",
                advice="Ask again once it runs; a clone begins with its schedule.",
            )
        path = JobFolder(Path(job.folder)).hyperparameters
        known = dict(_lines(path))
        if name not in known:
            raise JobError(
                f"`{name[:50]}` of {job_id} was not set by hand, so it does not go back to its schedule.",
                advice=f"Set by hand are: {', '.join(known)}." if known else "There is nothing to do: it follows it.",
            )
        rest = "".join(f"{each}: {text}\n" for each, text in known.items() if each != name)
        atomic_write_text(path, rest, "The hyperparameter")

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
                # By repr: 1, 1.0 and True are different settings, and a list cannot be in a set.
                if len({repr(each.get(path)) for each in flat}) > 1
            },
            "scalars": {tag: [_summary(job, tag) for job in jobs] for tag in tags},
        }


def _lines(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        return []
    pairs = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines())
    return [(name.strip(), text.strip()) for name, colon, text in pairs if colon]


def _check_rate(by_hand: float | None, job: Job, value: float) -> None:
    """Refuse a learning rate that is so much larger than the present one that the training is likely to diverge."""
    used = job.scalars.get("learning_rate")
    present = by_hand if by_hand is not None or used is None else used.last
    if present is None or not math.isfinite(present) or present <= 0 or value <= _MOST_TIMES * present:
        return
    raise ConfigurationError(
        f"The learning rate {value:g} is more than {_MOST_TIMES} times the present one, {present:g}: a training may "
        "diverge.",
        advice="Confirm it with `force` (in a shell `--yes`), or choose a smaller one.",
        details={"field": "learning_rate", "present": present, "confirm": "force"},
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # the file was changed from outside
        return None


def _flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [pair for name, part in value.items() for pair in _flat(part, f"{path}.{name}" if path else name)]


def _summary(job: Job, tag: str) -> dict[str, float] | None:
    found = job.scalars.get(tag)
    return None if found is None else {"last": found.last, "minimum": found.minimum, "maximum": found.maximum}


def act_on_jobs(
    jobs: Jobs,
    action: str,
    chosen: Sequence[str] | JobFilter,
    *,
    change: JobChange | None = None,
    force: bool = False,
    who: str = "",
    does: Callable[[str], object] | None = None,
) -> list[dict[str, Any]]:
    """Do something with many jobs; where it fails with one, the others have it done all the same.

    Args:
        jobs: of every kind.
        action: a name in ``BULK_ACTIONS``.
        chosen: ids, or a filter; its page does not matter.
        change: for the action ``change``.
        force: for the action ``delete``: also jobs that run.
        who: name of who asks.
        does: what is done with the job of an id, for an action that is not in ``BULK_ACTIONS``.

    Returns:
        ``id``, ``done``, and ``error`` (its JSON shape, or None) of each job.

    Raises:
        UnknownNameError: where there is no such action.
    """
    if does is None:
        if action not in BULK_ACTIONS:
            raise UnknownNameError("action", action, BULK_ACTIONS)
        does = functools.partial(_act, jobs, action, change or JobChange(), force, who)
    ids = chosen_ids(jobs, chosen) if isinstance(chosen, JobFilter) else list(dict.fromkeys(chosen))
    return [_result(does, job_id) for job_id in ids]


def _result(does: Callable[[str], object], job_id: str) -> dict[str, Any]:
    try:
        does(job_id)
    except ZigguratError as error:
        return {"id": job_id, "done": False, "error": error.as_dict()}
    return {"id": job_id, "done": True, "error": None}


def chosen_ids(jobs: Jobs, chosen: JobFilter) -> list[str]:
    """Return the ids of all jobs that a filter leaves, whatever its page."""
    found: list[str] = []
    while True:
        page = jobs.page(dataclasses.replace(chosen, offset=len(found), limit=_PAGE))
        found += [job.id for job in page.jobs]
        if not page.jobs or len(found) >= page.total:
            # Jobs may be added between two pages, which then overlap.
            return list(dict.fromkeys(found))


def _act(jobs: Jobs, action: str, change: JobChange, force: bool, who: str, job_id: str) -> None:
    if action == "change":
        jobs.change(job_id, change)
    elif action == "delete":
        jobs.delete(job_id, force=force)
    elif action == "stop_now":
        jobs.stop(job_id, who, now=True)
    elif action in ("stop", "pause"):
        getattr(jobs, action)(job_id, who)
    else:
        getattr(jobs, action)(job_id)


def clone_request(jobs: Jobs, job_id: str) -> JobRequest:
    """Return the request that would make a job again; its parent is that job.

    Places that came from other jobs are named by the ids of these, so that they are found where they are now.

    Raises:
        JobError: where there is none of that id.
    """
    job = jobs.get(job_id)
    spec: dict[str, Any] = copy.deepcopy(dict(job.spec))
    spec.pop("again_of", None)  # of a dataset: the parent of this one, not of its clone
    found = [other for other in (_find(jobs, each) for each in job.depends_on) if other is not None]
    dataset = next((other.id for other in found if other.kind == "dataset"), "")
    model = next((other for other in found if other.kind == "train"), None)
    if dataset and isinstance(spec.get("data"), dict):
        spec["data"].pop("source", None)
    checkpoint = ""
    if model is not None:
        checkpoint = str(spec.pop("pretrained", None) or "").removeprefix(model.folder).rpartition("checkpoints/")[2]
    return JobRequest(
        spec=spec,
        dataset=dataset,
        model=model.id if model is not None else "",
        checkpoint=checkpoint,
        project=job.project,
        tags=job.tags,
        notes=job.notes,
        priority=job.priority,
        parent=job.id,
    )


def _find(jobs: Jobs, job_id: str) -> Job | None:
    try:
        return jobs.get(job_id)
    except JobError:  # deleted since
        return None
