"""Worker of one attempt on its node: its folder, its process, its lease, and the exchange with the studio's mirror."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text
from ziggurat.cluster.exchange import Reply, Request
from ziggurat.cluster.lease import Lease, start_guard
from ziggurat.cluster.node_cache import NodeCache, inner_path, try_lock
from ziggurat.cluster.node_folder import NodeFolder
from ziggurat.entities import Share, WorkerRef
from ziggurat.errors import JobError
from ziggurat.jobs.executor import Ended
from ziggurat.jobs.local_executor import LocalExecutor
from ziggurat.layout import FEATURES_FOLDER, JOBS_FOLDER, PLACE_FILE, WEIGHTS_FOLDER, Places

__all__ = ["CACHE_BYTES", "LEASE_S", "NodeWorker", "cache_of"]

LEASE_S: Final = 15.0
"""How long a worker is listened to without an exchange."""

CACHE_BYTES: Final = 50 << 30
"""Size of the cache of a node by default."""

_HELD: Final = ".held"
"""File of an attempt's folder that the process which holds the worker has locked."""

_CACHE: Final = "cache"
_LEASES: Final = 4
"""After so many leases a worker has been killed by its guard."""

WORKER_COMMAND: Final = (sys.executable, "-m", "ziggurat.worker")


class NodeWorker:
    """A worker on this machine, for a studio on another. It never runs code of the job in its own process.

    Args:
        root: folder of this node for jobs.
        job_id: name of the job folder.
        attempt: number of the attempt; each has a folder of its own, so a superseded one disturbs no other. It is laid
            out like a workspace, and has what the job reads beside its own folder.
        command: starts a worker; the job folder is added.
        lease_s: how long a lease holds.
        cache_bytes: largest size of the node's cache.
        rank: number of the process, in a job over several nodes.
    """

    def __init__(
        self,
        root: Path,
        job_id: str,
        attempt: int,
        command: Sequence[str] = WORKER_COMMAND,
        lease_s: float = LEASE_S,
        cache_bytes: int = CACHE_BYTES,
        rank: int = 0,
    ) -> None:
        self._place = Path(root) / (f"{job_id}-{attempt}-rank{rank}" if rank else f"{job_id}-{attempt}")
        self.folder = self._place / JOBS_FOLDER / job_id
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = try_lock(self._place / _HELD)
        self._root, self._cache = Path(root), NodeCache(cache_of(root), cache_bytes)
        self._lease, self._lease_s = Lease(self.folder), lease_s
        self._command, self._attempt = tuple(command), attempt
        self._node_folder = NodeFolder(self.folder, attempt, rank=rank)
        self._put: dict[str, int] = {}
        self._executor: LocalExecutor | None = None
        self._worker: WorkerRef | None = None

    def receive(self, name: str, offset: int, data: bytes) -> None:
        """Write a part of a file that the worker needs, before it is started.

        Raises:
            UsageError: if the name leads out of the folder.
        """
        target = self.folder / inner_path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)

    # ---- what it reads beside its folder

    def see(self, workspace: str) -> None:
        """Let the worker use the studio's workspace, which this node sees."""
        for name in (FEATURES_FOLDER, WEIGHTS_FOLDER):
            if (Path(workspace) / name).is_dir():
                with suppress(FileExistsError):
                    (self._place / name).symlink_to(Path(workspace) / name)

    def stand_for(self, *workspaces: str) -> None:
        """Let paths into the studio's workspace, which this node does not see, mean the copies here.

        Args:
            workspaces: its path, also without links.
        """
        places = Places(str(self._place), tuple(dict.fromkeys(workspaces)))
        atomic_write_text(self._place / PLACE_FILE, places.text(), "The place of the workspace")
        self._remove_links_of_ended()

    def take(self, key: str, size_bytes: int, target: str) -> str:
        """Take a folder from the cache, or begin to copy it; see ``NodeCache.take``."""
        return self._cache.take(key, size_bytes, self._place / inner_path(target))

    def copy(self, name: str, offset: int, data: bytes) -> None:
        """Write the next part of a file of the folder that is copied; see ``NodeCache.write``."""
        self._cache.write(name, offset, data)

    def finish(self, files: Mapping[str, tuple[int, bytes]], target: str) -> None:
        """Compare and take the folder that was copied; see ``NodeCache.finish``."""
        self._cache.finish(files, self._place / inner_path(target))

    def put(self, name: str, data: bytes) -> None:
        """Write a file beside those of the cache, which the worker may change."""
        target = self._place / inner_path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        self._put[name] = len(data)

    def added(self) -> dict[str, bytes]:
        """Return what the worker added to such files, by name."""
        found = {name: (self._place / name).read_bytes()[size:] for name, size in self._put.items()}
        return {name: data for name, data in found.items() if data}

    def _remove_links_of_ended(self) -> None:
        """Remove the links into the cache that attempts left whose process was killed, so that it can evict again."""
        for place in self._root.iterdir():
            if place != self._place and (place / _HELD).exists():
                with suppress(OSError):  # another process removes it
                    self._remove_links(place)

    def _remove_links(self, place: Path) -> None:
        lock = try_lock(place / _HELD)
        if lock is None:
            return
        try:
            ages = [Lease(folder).age_s() for folder in (place / JOBS_FOLDER).glob("*")]
            if min(ages, default=float("inf")) > _LEASES * self._lease_s:  # the worker has ended, too
                for each in place.iterdir():
                    if each.is_dir() and not each.is_symlink() and each.name != JOBS_FOLDER:
                        shutil.rmtree(each, ignore_errors=True)
        finally:
            os.close(lock)

    # ---- the worker

    def address(self) -> tuple[str, int]:
        """Return the address of this machine, and a port that is free now."""
        with socket.socket() as free:
            free.bind(("", 0))
            return self.host(), free.getsockname()[1]

    def host(self) -> str:
        """Return the address of this machine, for other nodes."""
        return socket.gethostbyname(socket.gethostname())

    def accelerators(self, devices: Sequence[int]) -> list[int]:
        """Return the accelerators that the processes of this node get, given those of the plan."""
        return list(devices)

    def is_started(self) -> bool:
        """Return whether the worker was started; one whose studio was killed meanwhile never is."""
        return self._worker is not None

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
        """Remove the folder, once the mirror is whole, and give up a copy in the making."""
        self._cache.give_up()
        shutil.rmtree(self._place, ignore_errors=True)
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _started(self) -> tuple[LocalExecutor, WorkerRef]:
        if self._executor is None or self._worker is None:
            raise JobError("The worker must have been started.", received=str(self.folder))
        return self._executor, self._worker


def cache_of(root: Path) -> Path:
    """Return the folder of a node's cache."""
    return Path(root) / _CACHE
