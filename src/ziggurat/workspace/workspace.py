"""The object that every interface holds: operations on jobs, under the same names everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from ziggurat.atomic import atomic_write_text
from ziggurat.entities.worker_shim import start_worker
from ziggurat.errors import JobError
from ziggurat.layout import DATASETS_FOLDER, JOBS_FOLDER, JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, Spec, TrainSpec
from ziggurat.workspace.frameworks import worker_environment
from ziggurat.workspace.job_folders import JobFolders, JobStatus, open_job
from ziggurat.workspace.job_outputs import JobOutputs
from ziggurat.workspace.new_jobs import create_job, create_job_in, new_job_names
from ziggurat.workspace.training_checks import obstacle_of
from ziggurat.workspace.worker_process import WORKER_COMMAND, AttendedWorker, kill_worker, start_attended
from ziggurat.zoo.backends import with_backend

__all__ = ["Workspace"]


class Workspace:
    """Jobs in folders, and the workers that execute them.

    Args:
        settings: of this process; workers get the same.
        worker_command: what starts a worker; the job folder is added.
        clock: seconds since 1970.

    Attributes:
        jobs: by the paths of their folders.
        outputs: of the jobs: events, log, checkpoints.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        worker_command: Sequence[str] = WORKER_COMMAND,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._worker_command = tuple(worker_command)
        self._clock = clock
        self.jobs = JobFolders(clock)
        self.outputs = JobOutputs(self.jobs)

    # ---- jobs

    def start_training(self, spec: TrainSpec, folder: Path | None = None) -> Path:
        """Make a job folder; ``attend`` or ``detach`` then executes it. Return the folder.

        Args:
            spec: what is asked.
            folder: where; a new folder below the workspace where it is not given.

        Raises:
            ZigguratError: where the training cannot succeed, see ``obstacle_of``; nothing was made.
            JobError: where a job is there already.
            NetworkCodeError: where the network file cannot be read.
            StorageError: where the folder cannot be written.
        """
        obstacle = obstacle_of(spec)
        if obstacle is not None:
            raise obstacle
        return self._create(with_backend(spec), folder, JOBS_FOLDER)

    def start_dataset(self, spec: DatasetSpec, folder: Path | None = None) -> Path:
        """Make the folder of a dataset; ``attend`` or ``detach`` then makes the dataset. Return the folder.

        Args:
            spec: what is asked.
            folder: where; a new folder below the workspace where it is not given.

        Raises:
            JobError: where a job or a dataset is there already.
            StorageError: where the folder cannot be written.
        """
        return self._create(spec, folder, DATASETS_FOLDER)

    def attend(
        self, folder: Path, *, output: IO[Any] | None = None, say: Callable[[str], None] = lambda text: None
    ) -> AttendedWorker:
        """Execute a job, or go on with it, in a worker that ends with this process.

        Args:
            folder: the job folder.
            output: where the worker's standard output goes; to this process's own where it is not given.
            say: shows one sentence to the person who pressed Ctrl-C.

        Raises:
            JobError: where a worker is at it already, or the job is complete.
        """
        self._make_ready(folder)
        return start_attended(self._worker_command, folder, worker_environment(self.settings), output=output, say=say)

    def detach(self, folder: Path) -> int:
        """Execute a job, or go on with it, in a worker that outlives this process; return its process number.

        Raises:
            JobError: where a worker is at it already, or the job is complete.
        """
        job = self._make_ready(folder)
        command, limit_bytes = [*self._worker_command, str(folder)], self.settings.log_limit_mib << 20
        return start_worker(command, job.log, worker_environment(self.settings), log_limit_bytes=limit_bytes)[0]

    def stop(self, folder: Path, reason: str = "asked to stop", *, now: bool = False) -> JobStatus:
        """Ask the worker of a job to save and end; return the job's state from now on.

        Args:
            folder: the job folder.
            reason: one sentence for the record.
            now: kill the worker and all that it started; what is in no checkpoint is lost.

        Raises:
            JobError: where no worker is at it; with ``now``, also where it is on another machine.
            StorageError: where the request cannot be written.
        """
        status = self.status(folder)
        if not status.is_active:
            raise JobError(
                "Only a job that is running can be stopped.",
                received=f"{folder} is {status.state}",
                advice=f"Look at it with: ziggurat status {folder}",
            )
        atomic_write_text(JobFolder(folder).stop_request, reason + "\n", "The stop request")
        if now:
            kill_worker(JobFolder(folder))
        return self.status(folder)

    def status(self, folder: Path) -> JobStatus:
        """Return how a job is, from its files alone.

        Raises:
            JobError: where there is no job.
        """
        return self.jobs.get(str(folder))

    def _create(self, spec: Spec, folder: Path | None, kept_in: str) -> Path:
        if folder is not None:
            return create_job(spec, folder).path
        names = new_job_names(spec.name or spec.kind, self._clock())
        return create_job_in(spec, self.settings.workspace / kept_in, names).path

    def _make_ready(self, folder: Path) -> JobFolder:
        job, status = open_job(folder), self.status(folder)
        if not status.can_resume:
            raise JobError(
                "A job that is complete or under way is not started again.",
                received=f"{folder} is {status.state}",
                advice=f"Look at it with: ziggurat status {folder}",
            )
        job.stop_request.unlink(missing_ok=True)  # an old request must not end the new attempt
        return job
