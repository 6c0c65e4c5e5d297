"""Lock of a job folder: two workers never train in one folder."""

from __future__ import annotations

from pathlib import Path

from ziggurat.atomic import ProcessLock
from ziggurat.errors import JobError

__all__ = ["FolderLock"]


class FolderLock(ProcessLock):
    """The lock of a job folder.

    Args:
        path: the lock file.

    Raises:
        JobError: where another process holds it.
        StorageError: where the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        def taken(holder: str) -> JobError:
            return JobError(
                f"One worker at a time trains in {path.parent}.",
                received=f"process {holder} is at it",
                advice=f"Wait for it to end, or ask it to with: ziggurat stop {path.parent}.",
            )

        super().__init__(path, taken, f"A worker locks its folder by the file {path}.")
