"""The object that command line, REST and pages hold: a repository of jobs, and what is done with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ziggurat.settings import Settings
from ziggurat.workspace.job_folders import JobFolders, JobRepository
from ziggurat.workspace.job_outputs import JobOutputs
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.weights import Weights
from ziggurat.workspace.worker_process import WORKER_COMMAND

__all__ = ["Workspace", "open_folders"]

JobsT = TypeVar("JobsT", bound=JobRepository)


class Workspace(Generic[JobsT]):
    """A workspace over any repository of jobs; ``ziggurat.workspace.studio.Studio`` adds what needs a server.

    Args:
        settings: of this process; workers and tasks get the same.
        jobs: folders, or the database of a studio.
        offered: returns the folders below which tasks may read files for others; None for all.
        clock: seconds since 1970.

    Attributes:
        jobs: by their names: the paths of their folders, or their ids in a studio.
        outputs: of the jobs: events, log, checkpoints.
        tasks: short processes around a training.
        weights: pretrained weights.
        root: the folder of the workspace.
    """

    def __init__(
        self,
        settings: Settings,
        jobs: JobsT,
        *,
        offered: Callable[[], Sequence[str]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.root = settings.workspace.expanduser()
        self.clock = clock
        self.jobs = jobs
        self.outputs = JobOutputs(jobs)
        self.tasks = Tasks(settings, offered=offered)
        self.weights = Weights(settings, self.tasks, jobs, clock)


def open_folders(settings: Settings, *, worker_command: Sequence[str] = WORKER_COMMAND) -> Workspace[JobFolders]:
    """Return a workspace whose jobs are found in folders; it needs no database and no server.

    Args:
        settings: of this process.
        worker_command: what starts a worker; the job folder is added.
    """
    workspace = Workspace(settings, JobFolders(settings, worker_command=worker_command))
    workspace.jobs.add_weights = workspace.weights.add_named
    return workspace
