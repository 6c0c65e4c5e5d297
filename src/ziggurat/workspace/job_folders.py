"""Jobs in folders, without a studio: their state, from their files alone, and the workers that execute them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol

import psutil

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import Divergence, Heartbeat, Pulse, judge_pulse, read_heartbeat
from ziggurat.entities.arithmetic import AttemptArithmetic, arithmetic_after
from ziggurat.entities.baselines import baselines_line
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.entities.heartbeat import read_last_words
from ziggurat.entities.job_history import JobHistory, read_history
from ziggurat.entities.jobs import divergence_after, outcome_of
from ziggurat.entities.pretrained_weights import WeightsUser
from ziggurat.entities.processes import start_worker
from ziggurat.errors import ConfigurationError, JobError, SpecError
from ziggurat.layout import DATASETS_FOLDER, JOBS_FOLDER, JobFolder, job_folders
from ziggurat.records.manifest import MANIFEST_NAME
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, Spec, TrainSpec, read_content
from ziggurat.workspace.frameworks import worker_environment
from ziggurat.workspace.new_jobs import create_job, create_job_in, new_job_names, telling_name
from ziggurat.workspace.training_checks import obstacle_of
from ziggurat.workspace.worker_process import WORKER_COMMAND, AttendedWorker, kill_worker, start_attended
from ziggurat.zoo.backends import with_backend

__all__ = [
    "FoundJob",
    "JobFolders",
    "JobRepository",
    "JobStatus",
    "holds_job",
    "job_status",
    "open_job",
    "unlisted_folders",
    "unlisted_remark",
]

_LOST_REASON: Final = "the worker ended without a word: it was killed, or its machine went down"


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

    def weights_users(self, reference: str, states: Sequence[str] = (), /) -> list[WeightsUser]:
        """Return the trainings in some states (in any, if none) whose spec has a text as ``pretrained``."""
        ...


class JobFolders:
    """Jobs by the paths of their folders, and the workers that execute them; no studio is needed.

    Args:
        settings: of this process; workers get the same.
        worker_command: what starts a worker; the job folder is added.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        worker_command: Sequence[str] = WORKER_COMMAND,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._worker_command = tuple(worker_command)
        self._clock = clock
        self.add_weights: Callable[[str | None], None] = lambda _pretrained: None
        """Adds pretrained weights that a spec names, if their file is on this machine; the workspace sets it."""

    # ---- looking

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

    def weights_users(self, reference: str, states: Sequence[str] = ()) -> list[WeightsUser]:
        """Return the trainings of the workspace whose spec has a text as ``pretrained``, the newest first.

        Args:
            reference: such as ``weights:resnet18``.
            states: names in ``JOB_STATES``; none for all.
        """
        root = self._settings.workspace.expanduser()
        folders = [each for each in job_folders(root) if JobFolder(each).spec.is_file()]
        using = [each for each in folders if _spec_content(JobFolder(each)).get("pretrained") == reference]
        found = [job_status(each, self._clock()) for each in reversed(using)]
        wanted = [each for each in found if not states or each.state in states]
        return [WeightsUser(id=each.folder, name=each.name, state=each.state) for each in wanted]

    # ---- executing

    def create(self, spec: Spec, folder: Path | None = None) -> Path:
        """Make a job folder; ``attend`` or ``detach`` then executes the job. Return the folder.

        Args:
            spec: of a training or a dataset.
            folder: where; a new folder below the workspace where it is not given.

        Raises:
            ZigguratError: where a training cannot succeed, see ``obstacle_of``; nothing was made.
            JobError: where a job or a dataset is there already.
            NetworkCodeError: where the network file cannot be read.
            StorageError: where the folder cannot be written.
        """
        if isinstance(spec, TrainSpec):
            if spec.nodes > 1:
                raise ConfigurationError(
                    f"A training on {spec.nodes} nodes needs a studio with a cluster; here is one machine.",
                    advice="Submit it with `ziggurat train --studio`, or leave `nodes` out.",
                )
            obstacle = obstacle_of(spec, workspace=self._settings.workspace.expanduser())
            if obstacle is not None:
                raise obstacle
            self.add_weights(spec.pretrained)
            # Recorded in the spec: a resume uses the same backend, whatever is installed by then.
            spec = with_backend(spec)
        spec = spec.model_copy(update={"name": spec.name or telling_name(spec)})
        if folder is not None:
            return create_job(spec, folder).path
        parent = self._settings.workspace / (DATASETS_FOLDER if isinstance(spec, DatasetSpec) else JOBS_FOLDER)
        return create_job_in(spec, parent, new_job_names(spec.name, self._clock())).path

    def attend(
        self,
        name: str,
        *,
        output: IO[Any] | int | None = None,
        errors: IO[Any] | int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> AttendedWorker:
        """Execute a job, or resume it, in a worker that ends with this process.

        Args:
            name: path of the job folder.
            output: where the worker's standard output goes; to this process's own where it is not given.
            errors: where its standard error goes, likewise.
            say: shows one sentence to the person who pressed Ctrl-C.

        Raises:
            JobError: where a worker is at it already, or the job is complete.
        """
        folder, environment = self._ready(name).path, worker_environment(self._settings)
        outputs = {"output": output, "errors": errors}
        return start_attended(self._worker_command, folder, environment, say=say, **outputs)

    def detach(self, name: str) -> int:
        """Execute a job, or resume it, in a worker that outlives this process; return its process number.

        Raises:
            JobError: where a worker is at it already, or the job is complete.
        """
        job = self._ready(name)
        command, limit_bytes = [*self._worker_command, str(job.path)], self._settings.log_limit_mib << 20
        return start_worker(command, job.log, worker_environment(self._settings), log_limit_bytes=limit_bytes)[0]

    def stop(self, name: str, reason: str = "asked to stop", *, now: bool = False) -> JobStatus:
        """Ask the worker of a job to save and end; return the job's state from now on.

        Args:
            name: path of the job folder.
            reason: one sentence for the record.
            now: kill the worker and all that it started; what is in no checkpoint is lost.

        Raises:
            JobError: where no worker is at it; with ``now``, also where it is on another machine.
            StorageError: where the request cannot be written.
        """
        folder, status = self.folder(name), self.get(name)
        if not status.is_active:
            raise JobError(
                f"{name} is {status.state}; only a job that is running can be stopped.",
                advice=f"Look at it with: ziggurat status {name}",
            )
        # Written before a kill, too: afterwards it tells a job that was stopped from one that crashed.
        atomic_write_text(folder.stop_request, reason + "\n", "The stop request")
        if now:
            kill_worker(folder)
        return self.get(name)

    def _ready(self, name: str) -> JobFolder:
        job, status = self.folder(name), self.get(name)
        if not status.can_resume:
            raise JobError(
                f"{name} is {status.state}; a job that is complete or under way is not started again.",
                advice=f"Look at it with: ziggurat status {name}",
            )
        job.stop_request.unlink(missing_ok=True)  # an old request must not end the new attempt
        return job


@dataclass(frozen=True)
class JobStatus:
    """How a job is.

    Args:
        folder: the job folder.
        name: name in the spec.
        kind: kind of job in the spec.
        state: ``queued``, ``running``, ``stopping``, ``done``, ``failed`` or ``stopped``.
        health: of the worker: ``alive``, ``hung`` (a step takes far too long), ``silent`` (no heartbeat from a
            process that is there, or on another machine), ``lost`` (it is gone and never said so), or empty.
        reason: one sentence on why it ended; empty while it is under way.
        attempt: number of the newest attempt; 0 before the first.
        epoch: epoch that it is in.
        max_epoch: epochs that it has.
        global_step: steps done.
        total_steps: steps that it has (of a dataset: samples); 0 while unknown.
        stage: what is done at the moment, where a job has several stages; else empty.
        time_left_s: estimated; None while unknown.
        steps_per_s: recent rate.
        data_wait_share: share of the step time spent waiting for data, in [0, 1].
        scalars: newest value of each tag.
        last_checkpoint: name of the newest checkpoint; empty where there is none.
        best_checkpoint: in words, the one that is used if none is named; empty where there is none.
        baselines: the result of a finished training beside those of simple models, in one line; else empty.
        divergence: of a training that diverged, where and how; None where it did not.
        outcome: how it ended: ``diverged`` where it did, else its state; empty while it has not ended.
        arithmetic: of the newest attempt of a training, beside that of its checkpoint; None if not recorded.
        heartbeat_age_s: age of the newest heartbeat; None where there is none.
        pid: process of the worker; None where none is alive.
        host: machine of the newest attempt.
        exit_code: of the newest attempt, once it ended.
        error: the error that ended the newest attempt, as JSON values.
    """

    folder: str
    name: str
    kind: str
    state: str
    health: str
    reason: str
    attempt: int
    epoch: int
    max_epoch: int
    global_step: int
    total_steps: int
    stage: str
    time_left_s: float | None
    steps_per_s: float | None
    data_wait_share: float | None
    scalars: dict[str, float]
    last_checkpoint: str
    best_checkpoint: str
    baselines: str
    divergence: Divergence | None
    outcome: str
    arithmetic: AttemptArithmetic | None
    heartbeat_age_s: float | None
    pid: int | None
    host: str
    exit_code: int | None
    error: dict[str, Any] | None

    @property
    def is_active(self) -> bool:
        """Whether a worker is at it."""
        return self.state in ("running", "stopping")

    @property
    def can_resume(self) -> bool:
        """Whether a new attempt may begin."""
        return self.state in ("queued", "stopped", "failed")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "can_resume": self.can_resume}


def open_job(path: Path) -> JobFolder:
    """Return the job folder at a path.

    Raises:
        JobError: where there is none.
    """
    folder = JobFolder(path)
    if not folder.spec.is_file():
        raise JobError(
            f"`{path}` is not the folder of a job: it has no spec.json."
            if path.exists()
            else f"`{path}` does not exist.",
            advice="Name its folder, or the id or name of a job of the workspace.",
        )
    return folder


def holds_job(folder: Path) -> bool:
    """Return whether a folder has the spec of a job, or the manifest of a dataset: a version of one has no spec."""
    return JobFolder(folder).spec.is_file() or (folder / MANIFEST_NAME).is_file()


def job_status(path: Path, now: float) -> JobStatus:
    """Return how the job in a folder is.

    Args:
        path: the job folder.
        now: seconds since 1970.

    Raises:
        JobError: where there is no job.
    """
    folder = open_job(path)
    spec = _spec_content(folder)
    heartbeat = read_heartbeat(folder.heartbeat)
    history, scalars = read_history(folder.events)
    words = read_last_words(folder.last_words, heartbeat.time if heartbeat is not None else 0.0)
    if words is not None and (history.ended is None or words.time > history.ended.time):
        history.ended = words  # the disk was full
    state, health = _state(folder, history, heartbeat, now, _number(spec, "hung_after_s", 120.0))
    active = state in ("running", "stopping")
    started, progress, ended = history.started, history.progress if active else None, history.ended
    beat = heartbeat if heartbeat is not None and active else None
    best = best_checkpoint(folder)
    divergence = None if history.divergence is None else divergence_after(history.divergence)
    return JobStatus(
        folder=str(path),
        name=str(spec.get("name", "")),
        kind=str(spec.get("kind", "")),
        state=state,
        health=health,
        reason="" if active else _reason(folder, history, state, health),
        attempt=history.attempt,
        epoch=max(history.epoch, beat.epoch if beat else 0),
        max_epoch=_max_epoch(history, spec),
        global_step=max(history.global_step, beat.global_step if beat else 0),
        total_steps=_total_steps(history),
        stage=progress.stage if progress else "",
        time_left_s=progress.remaining_s if progress else None,
        steps_per_s=progress.steps_per_s if progress else None,
        data_wait_share=progress.data_wait_share if progress else None,
        scalars={tag: point.value for tag, point in sorted(scalars.items())},
        last_checkpoint=next(reversed(history.checkpoints), ""),
        best_checkpoint="" if best is None else best.text,
        baselines=baselines_line(folder),
        divergence=divergence,
        outcome=outcome_of(state, divergence),
        arithmetic=_arithmetic(history),
        heartbeat_age_s=None if heartbeat is None else max(0.0, now - heartbeat.time),
        pid=beat.pid if beat else None,
        host=heartbeat.host if heartbeat else started.host if started else "",
        exit_code=None if active or ended is None else ended.exit_code,
        error=None if active or history.error is None else history.error.error,
    )


def _arithmetic(history: JobHistory) -> AttemptArithmetic | None:
    newest = history.arithmetic.get(history.attempt)
    return None if newest is None else arithmetic_after(newest)


def _reason(folder: JobFolder, history: JobHistory, state: str, health: str) -> str:
    if health != "lost":
        return history.ended.reason if history.ended else ""
    if state == "stopped":
        asked = folder.stop_request.read_text(encoding="utf-8", errors="replace").strip() or "asked to stop"
        return f"{asked}, by force: its worker ended before it had saved"
    return _LOST_REASON


def _max_epoch(history: JobHistory, spec: dict[str, Any]) -> int:
    planned = history.started.max_epoch if history.started else int(_number(spec, "epochs", 0))
    return planned or (history.progress.max_epoch if history.progress else 0)


def _total_steps(history: JobHistory) -> int:
    started = history.started
    planned = started.max_epoch * started.steps_per_epoch if started else 0
    return planned or (history.progress.total_steps if history.progress else 0)


def _spec_content(folder: JobFolder) -> dict[str, Any]:
    try:
        return read_content(folder.spec)
    except SpecError:
        return {}  # a job whose spec is damaged still has a state


def _number(spec: dict[str, Any], name: str, otherwise: float) -> float:
    value = spec.get(name)
    return value if isinstance(value, int | float) else otherwise


def _state(
    folder: JobFolder, history: JobHistory, heartbeat: Heartbeat | None, now: float, hung_after_s: float
) -> tuple[str, str]:
    ended = history.ended
    # A heartbeat after the end is of an attempt that has written no event yet.
    is_new_attempt = heartbeat is not None and (ended is None or heartbeat.time > ended.time)
    if ended is not None and (not is_new_attempt or _is_last_beat(heartbeat, history)):
        return ended.outcome, ""
    if heartbeat is None:
        return ("failed", "lost") if history.started else ("queued", "")
    pulse = judge_pulse(heartbeat, now, hung_after_s=hung_after_s)
    is_here = heartbeat.host == socket.gethostname()
    if is_here and not _is_alive(heartbeat):
        return ("stopped" if folder.stop_request.exists() else "failed"), "lost"
    asked = folder.stop_request.exists() or heartbeat.phase == "stopping"
    return "stopping" if asked else "running", pulse.value if pulse is not Pulse.ALIVE else "alive"


def _is_last_beat(heartbeat: Heartbeat | None, history: JobHistory) -> bool:
    """Return whether the attempt that ended made a heartbeat: workers of earlier versions could do so after its end."""
    started = history.started
    if heartbeat is None or started is None:
        return False
    return heartbeat.phase == "stopping" and (heartbeat.pid, heartbeat.host) == (started.pid, started.host)


def _is_alive(heartbeat: Heartbeat) -> bool:
    try:
        process = psutil.Process(heartbeat.pid)
        # Process numbers come round again: one that began after the heartbeat is another process.
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= heartbeat.time + 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def unlisted_folders(workspace: Path, known: Collection[str]) -> list[Path]:
    """Return the folders of a workspace that hold a job and are not in the database.

    Args:
        workspace: the folder of everything.
        known: ids of the jobs in the database.
    """
    return [each for each in job_folders(workspace) if each.name not in known and holds_job(each)]


def unlisted_remark(folders: Sequence[Path]) -> str:
    """Return what is said of folders that are not listed; empty where there are none."""
    if not folders:
        return ""
    what = "1 job folder is" if len(folders) == 1 else f"{len(folders)} job folders are"
    return f"{what} not listed: run `ziggurat reindex`."
