"""Several executors as one: the studio's own machine, and the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ziggurat.entities import Heartbeat, NodeResources, Share, WorkerRef
from ziggurat.errors import JobError
from ziggurat.jobs.executor import Ended, Executor, Running
from ziggurat.jobs.local_executor import LOCAL

__all__ = ["SeveralExecutors"]


class SeveralExecutors:
    """Passes each request on to the executor that has the node or the worker.

    Args:
        executors: name → executor; the first one has the studio's own machine. A node that another one calls like an
            earlier node is left out: it is the same machine, whose resources must not be given twice.
    """

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = dict(executors)

    def nodes(self) -> Sequence[NodeResources]:
        """Return the nodes of all of them."""
        found: dict[str, NodeResources] = {}
        for executor in self._executors.values():
            for node in executor.nodes():
                found.setdefault(node.name, node)
        return tuple(found.values())

    def problem(self) -> str:
        """Return the problems of all of them."""
        return "; ".join(filter(None, (executor.problem() for executor in self._executors.values())))

    def start(
        self, job_folder: Path, placement: Sequence[Share], environment: Mapping[str, str], *, attempt: int
    ) -> WorkerRef:
        """Start a worker by the executor of its nodes."""
        known = {node.name: node.executor for node in self.nodes()}
        names = {known.get(share.node, "") for share in placement}
        if len(names) != 1 or not names <= set(self._executors):
            nodes = ", ".join(share.node for share in placement)
            raise JobError("The nodes of a job must be there, and of one executor.", received=nodes or "no node")
        return self._executors[names.pop()].start(job_folder, placement, environment, attempt=attempt)

    def poll(self, worker: WorkerRef) -> Running | Ended:
        """Return how the worker is."""
        return self._of(worker).poll(worker)

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        """Ask the worker to save and end."""
        self._of(worker).ask_to_stop(worker, reason)

    def terminate(self, worker: WorkerRef) -> None:
        """Send the worker SIGTERM."""
        self._of(worker).terminate(worker)

    def kill(self, worker: WorkerRef) -> None:
        """End the worker."""
        self._of(worker).kill(worker)

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        """Return the live worker of a folder, by the executor that started it, or else by the first that finds it."""
        if worker is not None and worker.opaque and worker.executor in self._executors:
            found = self._executors[worker.executor].adopt(folder, heartbeat, worker)
            if found is not None or worker.executor == LOCAL:
                return found
        if worker is not None and worker.executor != LOCAL:
            # It came from a node, which may be this machine: a worker that is given up may be alive there, in a folder
            # of its own.
            heartbeat = None
        found = (executor.adopt(folder, heartbeat, worker) for executor in self._executors.values())
        return next((each for each in found if each is not None), None)

    def _of(self, worker: WorkerRef) -> Executor:
        if worker.executor not in self._executors:
            raise JobError(
                "The executor of a worker must be there.",
                received=f"{worker.executor}; there are {', '.join(self._executors)}",
                advice="Start the studio as it was started with this job.",
            )
        return self._executors[worker.executor]
