"""Requests to the process between studio and cluster, which follows the jobs that run there.

It is apart from any cluster's library: a ``Cluster`` starts workers on nodes and finds them again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.cluster.followed_group import FollowedGroup, ranks_of
from ziggurat.cluster.followed_job import FollowedJob, Place, RemoteWorker, UnreachableError
from ziggurat.entities import Share
from ziggurat.errors import JobError, UnknownNameError, ZigguratError
from ziggurat.settings import RESUMED_ON_VARIABLE

__all__ = ["NOT_NOW", "Bridge", "Cluster"]

NOT_NOW: Final = "not_now"
"""Name among the details of an error of what is over by itself."""

_OF_NODE: Final = 8
"""Exchanges with a node at the same time. Those with other nodes do not wait for one that hangs."""

_OF_JOBS: Final = 256
"""Jobs that are begun or ended at the same time; to copy a large dataset takes long."""


class Cluster(Protocol):
    """Machines on which workers can be started. Every method may raise an ``UnreachableError``."""

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes, as plain values."""
        ...

    def place(self, node: str) -> Place:
        """Return what is known of a node."""
        ...

    def create(self, job_id: str, attempt: int, shares: Sequence[Share]) -> list[RemoteWorker]:
        """Make a worker for each rank, or none; they outlive this process."""
        ...

    def find(self, job_id: str, attempt: int, rank: int) -> RemoteWorker | None:
        """Return a worker that was made before, also by another process; None if there is none."""
        ...

    def release(self, job_id: str, attempt: int) -> None:
        """Give back what an attempt held that has ended."""
        ...


class Bridge:
    """Follows jobs on a cluster.

    Args:
        cluster: where they run.
        lease_s: how long a lease holds.
        every_s: seconds between exchanges.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        lease_s: float,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._lease_s = lease_s
        self._every_s = every_s
        self._clock = clock
        self._jobs: dict[tuple[str, int], FollowedJob | FollowedGroup] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._exchanges: dict[str, ThreadPoolExecutor] = {}
        self._pool = ThreadPoolExecutor(_OF_JOBS, "job")
        self._busy: set[FollowedJob | FollowedGroup] = set()
        """Those at which a thread is: it begins them, ends them, or exchanges with their node."""
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)
        self._thread.start()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of the studio.

        Raises:
            UnknownNameError: for an unknown request.
            JobError: if the job is not followed, or the cluster does not answer.
        """
        asked = {
            "nodes": self._nodes,
            "start": self._start,
            "adopt": self._adopt,
            "states": self._states,
            "stop": self._ask_to_stop,
            "forget": self._forget,
            "terminate": lambda request: self._job(request).terminate(),
            "kill": lambda request: self._job(request).kill(),
        }
        name = str(request.get("do"))
        if name not in asked:
            raise UnknownNameError("request to the bridge", name, asked)
        try:
            return asked[name](request) or {}
        except UnreachableError as error:
            raise JobError("The cluster does not answer.", received=str(error), details={NOT_NOW: True}) from None

    def close(self) -> None:
        """Follow no job any more; the workers go on for the length of their lease."""
        self._closing.set()
        self._thread.join()
        self._pool.shutdown()
        for each in self._exchanges.values():
            each.shutdown()

    # ---- requests

    def _nodes(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"nodes": self._cluster.nodes()}

    def _start(self, request: Mapping[str, Any]) -> None:
        folder, attempt = Path(request["folder"]), request["attempt"]
        shares = _shares(request)
        job = self._followed(
            folder,
            attempt,
            shares,
            self._cluster.create(folder.name, attempt, shares),
            # Also of one process, if it resumes on fewer than it had.
            is_group=RESUMED_ON_VARIABLE in request["environment"],
        )
        devices = shares[0].devices
        key = (folder.name, attempt)
        with self._lock:
            self._jobs[key] = job
            self._busy.update((job, *job.members))
        self._pool.submit(self._run, (job, *job.members), lambda: job.begin(devices, request["environment"]))

    def _adopt(self, request: Mapping[str, Any]) -> dict[str, Any]:
        folder, attempt = Path(request["folder"]), request["attempt"]
        key = (folder.name, attempt)
        with self._lock:
            known = self._jobs.get(key)
        if known is None:
            shares = _shares(request)
            found = [self._cluster.find(*key, rank) for rank, _ in ranks_of(shares)]
            workers = [worker for worker in found if worker is not None]
            if len(workers) < len(found):
                for worker in workers:  # they wait for one that is gone
                    with suppress(UnreachableError, ZigguratError):
                        worker.kill()
                self._cluster.release(*key)
                return {"is_there": False}
            with self._lock:
                self._jobs.setdefault(key, self._followed(folder, attempt, shares, workers))
        return {"is_there": True}

    def _followed(
        self,
        folder: Path,
        attempt: int,
        shares: Sequence[Share],
        workers: Sequence[RemoteWorker],
        *,
        is_group: bool = False,
    ) -> FollowedJob | FollowedGroup:
        common = (self._lease_s, self._clock, self._closing)
        members = [
            FollowedJob(folder, attempt, worker, replace(self._cluster.place(share.node), rank=rank), *common)
            for (rank, share), worker in zip(ranks_of(shares), workers, strict=True)
        ]
        if len(members) == 1 and not is_group:
            return members[0]
        return FollowedGroup(folder, members, shares, self._clock)

    def _states(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            return {"states": [[*key, dict(job.state)] for key, job in self._jobs.items()]}

    def _ask_to_stop(self, request: Mapping[str, Any]) -> None:
        self._job(request).ask_to_stop(str(request["reason"]))

    def _forget(self, request: Mapping[str, Any]) -> None:
        """Follow a job no more that has ended, or is given up."""
        job = self._job(request)
        if job.state["state"] != "running":
            with self._lock:
                self._jobs.pop((Path(request["folder"]).name, request["attempt"]), None)
            self._cluster.release(job.folder.name, request["attempt"])

    def _job(self, request: Mapping[str, Any]) -> FollowedJob | FollowedGroup:
        key = (Path(request["folder"]).name, request["attempt"])
        with self._lock:
            job = self._jobs.get(key)
        if job is None:
            raise JobError("The bridge does not follow this job.", received=f"{key[0]}, attempt {key[1]}")
        return job

    # ---- the thread

    def _follow(self) -> None:
        while not self._closing.wait(self._every_s):
            with self._lock:
                jobs = [job for job in self._jobs.values() if job.state["state"] == "running"]
            for job in jobs:
                for member in job.members:
                    if member.state["state"] == "running" and self._take(member):
                        member.expect_look()
                        self._exchanges_with(member.node).submit(self._run, (member,), member.look)
                    member.judge()
                if isinstance(job, FollowedGroup) and self._take(job):
                    self._pool.submit(self._run, (job,), job.judge)

    def _exchanges_with(self, node: str) -> ThreadPoolExecutor:
        if node not in self._exchanges:
            self._exchanges[node] = ThreadPoolExecutor(_OF_NODE, "exchange")
        return self._exchanges[node]

    def _take(self, job: FollowedJob | FollowedGroup) -> bool:
        """Return whether no thread is at a job; then the caller's is."""
        with self._lock:
            is_free = job not in self._busy
            self._busy.add(job)
        return is_free

    def _run(self, jobs: Sequence[FollowedJob | FollowedGroup], act: Callable[[], None]) -> None:
        try:
            act()
        finally:
            with self._lock:
                self._busy.difference_update(jobs)


def _shares(request: Mapping[str, Any]) -> list[Share]:
    return [Share(node, tuple(devices), tuple(ranks)) for node, devices, ranks in request["shares"]]
