"""Executor interface: starts workers, reports whether they are alive, and ends them.

``ziggurat.testing.executor`` is the conformance suite for any implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ziggurat.entities import Heartbeat

__all__ = ["Ended", "Executor", "Handle", "Running"]


@dataclass(frozen=True, kw_only=True)
class Handle:
    """A worker, as its executor knows it.

    Args:
        folder: the job folder.
        pid: its process.
        host: its machine.
        birth: what tells the process from a later one with the same number, as the executor sees fit.
        shim: process that started the worker and ends once nothing of it is left; None where there is none.
        shim_birth: the same of that process.
    """

    folder: Path
    pid: int
    host: str
    birth: float
    shim: int | None = None
    shim_birth: float = 0.0


@dataclass(frozen=True)
class Running:
    """The worker has not ended."""


@dataclass(frozen=True)
class Ended:
    """The worker is gone.

    Args:
        exit_code: negative for the signal that killed it; None if unknown, because another process had
            started the worker.
    """

    exit_code: int | None


@runtime_checkable
class Executor(Protocol):
    """Starts workers that outlive the process that started them. Any thread may call any method."""

    def start(self, job_folder: Path, devices: Sequence[int], environment: Mapping[str, str]) -> Handle:
        """Start a worker in a process group of its own, its output in the folder's log.

        Args:
            job_folder: with a ``spec.json``.
            devices: indices of the accelerators that it may see; empty for none.
            environment: variables besides those of the executor.

        Raises:
            StorageError: where the log cannot be written, or no process can be made.
        """
        ...

    def poll(self, handle: Handle) -> Running | Ended:
        """Return how the worker is; once it has ended, always the same answer. It does not wait."""
        ...

    def ask_to_stop(self, handle: Handle, reason: str) -> None:
        """Ask the worker to save and end.

        Raises:
            StorageError: where the request cannot be written.
        """
        ...

    def terminate(self, handle: Handle) -> None:
        """Send the worker SIGTERM, or what comes near it there; one that has ended is no error."""
        ...

    def kill(self, handle: Handle) -> None:
        """End the worker and everything that it started, at once; where it has ended, what it left behind.

        That includes processes that left its process group and its session.
        """
        ...

    def adopt(self, folder: Path, heartbeat: Heartbeat | None) -> Handle | None:
        """Return the live worker of a folder, regardless of who started it; None if there is none.

        Args:
            folder: the job folder.
            heartbeat: the newest one there; None where the worker may not have written one yet.
        """
        ...
