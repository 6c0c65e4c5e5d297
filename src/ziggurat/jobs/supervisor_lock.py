"""Lock that limits a workspace to one supervisor at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.entities.process_lock import ProcessLock
from ziggurat.errors import JobError

__all__ = ["SUPERVISOR_LOCK", "SupervisorLock"]

SUPERVISOR_LOCK: Final = ".supervisor.lock"
"""File in the workspace that the supervisor's process holds."""


class SupervisorLock(ProcessLock):
    """The lock of a workspace.

    Args:
        workspace: the folder of everything; made where it is not there.

    Raises:
        JobError: where another supervisor is at work.
        StorageError: where the file cannot be made.
    """

    def __init__(self, workspace: Path) -> None:
        def taken(holder: str) -> JobError:
            return JobError(
                f"One studio at a time starts the jobs of {workspace}.",
                received=f"process {holder} does so",
                advice="Use that one, end it first, or choose another workspace.",
            )

        with storage_errors(workspace):
            workspace.mkdir(parents=True, exist_ok=True)
        path = workspace / SUPERVISOR_LOCK
        super().__init__(path, taken, f"A studio locks its workspace by the file {path}.")
