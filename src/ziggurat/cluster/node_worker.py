"""Worker of one attempt on its node: its folder, its process, its lease, and the exchange with the studio's mirror."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ziggurat.cluster.exchange import Reply, Request
from ziggurat.cluster.lease import Lease, start_guard
from ziggurat.cluster.node_folder import NodeFolder
from ziggurat.entities import Share, WorkerRef
from ziggurat.errors import JobError, UsageError
from ziggurat.jobs.executor import Ended
from ziggurat.jobs.local_executor import LocalExecutor

__all__ = ["LEASE_S", "NodeWorker"]

LEASE_S: Final = 15.0
"""How long a worker is listened to without an exchange."""

WORKER_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker")


class NodeWorker:
    """A worker on this machine, for a studio on another. It never runs code of the job in its own process.

    Args:
        root: folder of this node for jobs.
        job_id: name of the job folder.
        attempt: number of the attempt; each has a folder of its own, so a superseded one disturbs no other.
        command: starts a worker; the job folder is added.
        lease_s: how long a lease holds.
    """

    def __init__(
        self,
        root: Path,
        job_id: str,
        attempt: int,
        command: Sequence[str] = WORKER_COMMAND,
        lease_s: float = LEASE_S,
    ) -> None:
        self.folder = Path(root) / f"attempt-{attempt}" / job_id
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lease, self._lease_s = Lease(self.folder), lease_s
        self._command, self._attempt = tuple(command), attempt
        self._node_folder = NodeFolder(self.folder, attempt)
        self._executor: LocalExecutor | None = None
        self._worker: WorkerRef | None = None

    def receive(self, name: str, offset: int, data: bytes) -> None:
        """Write a part of a file that the worker needs, before it is started.

        Raises:
            UsageError: if the name leads out of the folder.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise UsageError("A file of a job must lie in its folder.", received=name)
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)

    def start(self, devices: Sequence[int], environment: Mapping[str, str]) -> dict[str, Any]:
        """Start the worker, once, and return what its executor knows it by.

        Args:
            devices: indices of its accelerators.
            environment: variables besides those of this process.

        Raises:
            StorageError: where the log cannot be written, or no process can be made.
        """
        if self._worker is None:
            variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
            self._executor = LocalExecutor(self._command, {**variables, **environment})
            share = Share(socket.gethostname(), tuple(devices))
            self._worker = self._executor.start(self.folder, (share,), {}, attempt=self._attempt)
            self._lease.grant(self._worker)
            start_guard(self.folder, self._lease_s)
        return dict(self._worker.opaque)

    def exchange(self, request: Request) -> Reply:
        """Return what the mirror lacks, and renew the lease.

        Raises:
            JobError: if the request is of another attempt, or the worker was not started.
        """
        executor, worker = self._started()
        state = executor.poll(worker)
        reply = self._node_folder.exchange(request, (state.exit_code,) if isinstance(state, Ended) else None)
        self._lease.renew()
        return reply

    def terminate(self) -> None:
        """Send the worker SIGTERM."""
        executor, worker = self._started()
        executor.terminate(worker)

    def kill(self) -> None:
        """End the worker and all that it started."""
        executor, worker = self._started()
        executor.kill(worker)

    def remove(self) -> None:
        """Remove the folder, once the mirror is whole."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _started(self) -> tuple[LocalExecutor, WorkerRef]:
        if self._executor is None or self._worker is None:
            raise JobError("The worker must have been started.", received=str(self.folder))
        return self._executor, self._worker
