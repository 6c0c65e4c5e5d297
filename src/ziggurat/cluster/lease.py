"""Lease of a worker on another machine: renewed while the studio asks, and what ends the worker without it.

The guard is a process of its own, because the process that holds the worker may be killed and its worker goes on. A
worker without a lease is asked to save and end after a second lease, so that a studio that comes back finds what it
did, and is killed after a third.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import WorkerRef
from ziggurat.errors import StorageError
from ziggurat.jobs.executor import Ended
from ziggurat.jobs.local_executor import LocalExecutor

__all__ = ["Lease", "main", "start_guard"]

_FILE: Final = ".lease.json"
_LOOKS: Final = 20
"""How often the guard looks in a lease."""

_REASON: Final = "the studio did not ask for this job any more"


class Lease:
    """The lease of the worker in a folder.

    Args:
        folder: the job folder on the node.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE

    def grant(self, worker: WorkerRef) -> None:
        """Begin the lease of a worker."""
        atomic_write_text(self.path, json.dumps(asdict(worker)), "The lease of a worker")

    def renew(self) -> None:
        """Let it begin anew."""
        os.utime(self.path)

    def age_s(self) -> float:
        """Return how long ago it began; infinite if there is none."""
        try:
            # By the clock of the disk on which the file is, which may not be this machine's.
            return max(0.0, time.time() - self.path.stat().st_mtime)
        except OSError:
            return float("inf")

    def worker(self) -> WorkerRef:
        """Return the worker that has it."""
        return WorkerRef(**json.loads(self.path.read_text(encoding="utf-8")))


def start_guard(folder: Path, lease_s: float) -> int:
    """Start the guard of the worker in a folder, and return its process number; it ends with the worker.

    Args:
        folder: the job folder, in which a lease was granted.
        lease_s: how long a lease holds.
    """
    words = [sys.executable, "-m", "ziggurat.cluster.lease", str(folder), f"{lease_s:g}"]
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=nothing, setsid=True)


def main(arguments: Sequence[str]) -> None:
    """Watch a lease until its worker has ended."""
    folder, lease_s = Path(arguments[0]), float(arguments[1])
    lease, executor = Lease(folder), LocalExecutor((), {})
    worker = lease.worker()
    is_asked = False
    while not isinstance(executor.poll(worker), Ended):
        age_s = lease.age_s()
        if age_s > 3 * lease_s:
            executor.kill(worker)
        elif age_s > 2 * lease_s and not is_asked:
            is_asked = True
            with suppress(StorageError):  # a full disk: it is killed soon
                executor.ask_to_stop(worker, _REASON)
        time.sleep(lease_s / _LOOKS)


if __name__ == "__main__":
    main(sys.argv[1:])
