"""Executor interface: starts workers on nodes, reports whether they are alive, and ends them.

``ziggurat.testing.executor`` is the conformance suite for any implementation. Each is found by the entry-point group
``ziggurat.executors``, whose entries take ``ExecutorOptions`` and return an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ziggurat.entities import Heartbeat, NodeResources, Share, WorkerRef
from ziggurat.errors import JobError

__all__ = ["Ended", "Executor", "ExecutorOptions", "NotNowError", "Running", "worker_fields"]


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """What a studio gives an executor.

    Args:
        command: starts a worker on this machine; the job folder is added.
        environment: of the workers on this machine, whole.
        resources: returns what this machine has for jobs.
        log_limit_bytes: how large the log of a job may become.
        workspace: folder of the studio.
        address: of a cluster; empty for this machine alone.
        cache_gib: largest size of the cache of a node that does not see the workspace, in GiB.
        slurm_options: words for ``sbatch`` besides those of the studio.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    resources: Callable[[], NodeResources]
    log_limit_bytes: int
    workspace: Path
    address: str = ""
    slurm_options: str = ""
    cache_gib: int = 50


@dataclass(frozen=True)
class Running:
    """The worker has not ended.

    Args:
        waits: why it has not begun, where a cluster's own queue holds it, in words for people; empty if it has.
    """

    waits: str = ""


@dataclass(frozen=True)
class Ended:
    """The worker is gone.

    Args:
        exit_code: negative for the signal that killed it; None if unknown, because another process had
            started the worker.
        lost_node: the node that does not answer, if that is why; the job goes back into the queue then.
        reason: why it ended, where the executor knows it; what the worker said itself counts more.
        goes_on: whether the cluster took the node back: the job goes back into the queue, unless it failed or is done.
        stuck: why it fails instead if its last two attempts saved nothing new; empty where it always goes on.
    """

    exit_code: int | None
    lost_node: str = ""
    reason: str = ""
    goes_on: bool = False
    stuck: str = ""


@runtime_checkable
class Executor(Protocol):
    """Starts workers that outlive the process that started them. Any thread may call any method.

    A ``WorkerRef`` goes into the store as JSON values and may come back in another process, so what tells a worker from
    a later one must be in its ``opaque``.
    """

    def nodes(self) -> Sequence[NodeResources]:
        """Return the machines that workers can be started on, with what they have for jobs, in use or not.

        It does not wait for a machine that does not answer: such a one is left out.
        """
        ...

    def problem(self) -> str:
        """Return what keeps nodes from being used, in a sentence for people; empty if nothing does."""
        ...

    def start(
        self, job_folder: Path, placement: Sequence[Share], environment: Mapping[str, str], *, attempt: int
    ) -> WorkerRef:
        """Start the worker of a job on all of its shares, or on none; its output goes into the folder's log.

        Args:
            job_folder: with a ``spec.json``.
            placement: node and accelerators of each share; rank 0 is in the first. A worker sees the accelerators of
                its share and no others.
            environment: variables besides those of the executor.
            attempt: number of the attempt, greater than those of earlier starts.

        Raises:
            StorageError: where the log cannot be written, or no process can be made.
            JobError: where a share is on a node that this executor does not have.
            NotNowError: where that, or another obstacle, is over by itself; no worker was started.
        """
        ...

    def poll(self, worker: WorkerRef) -> Running | Ended:
        """Return how the worker is; once it has ended, always the same answer. It does not wait."""
        ...

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        """Ask the worker to save and end.

        Raises:
            StorageError: where the request cannot be written.
        """
        ...

    def terminate(self, worker: WorkerRef) -> None:
        """Send the worker SIGTERM, or what comes near it there; one that has ended is no error."""
        ...

    def kill(self, worker: WorkerRef) -> None:
        """End the worker and everything that it started, at once; where it has ended, what it left behind.

        That includes processes that left its process group and its session.
        """
        ...

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        """Return the live worker of a folder, regardless of who started it; None if there is none.

        Args:
            folder: the job folder; it may have been moved since the worker was started.
            heartbeat: the newest one there; None where the worker may not have written one yet.
            worker: as the store has it; None where it knows none, such as one that the shell or an earlier release
                started.
        """
        ...


class NotNowError(JobError):
    """The cluster cannot start a worker at this moment, such as on a node that has just gone: the job waits on."""


def worker_fields(worker: WorkerRef) -> dict[str, Any]:
    """Return the fields of ``Job`` that say who is at work."""
    return {"worker": worker, "pid": worker.opaque.get("pid"), "host": worker.node}
