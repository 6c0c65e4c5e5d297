"""Deletion of job folders: hidden at once by a rename, removed from disk later, safe against a kill in between."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.errors import JobError, StorageError
from ziggurat.layout import lies_in, present_path

__all__ = ["TRASH_FOLDER", "Discarded", "Trash"]

TRASH_FOLDER: Final = ".trash"
"""Its name in the workspace."""

_HIDDEN: Final = f"{TRASH_FOLDER}-"
"""Begins the name of a discarded folder that stays on its own disk."""


@dataclass(frozen=True)
class Discarded:
    """A folder in the trash.

    Args:
        path: where it lies now.
        job_id: of the job that it was.
        since: when it was discarded, in seconds since 1970.
    """

    path: Path
    job_id: str
    since: float


class Trash:
    """The folder of deleted jobs in a workspace. A folder is there under ``JOB.SECONDS``.

    Args:
        workspace: the folder of everything; nothing outside of it is ever removed.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.folder = workspace / TRASH_FOLDER
        self._emptying = threading.Lock()

    def discard(self, path: Path, job_id: str, now: float) -> Discarded | None:
        """Move a job folder into the trash; None where it is not there.

        A folder on another disk stays there, under a hidden name.

        Raises:
            JobError: where it is none of the workspace.
            StorageError: where it cannot be moved.
        """
        if not os.path.lexists(path):
            return None
        if not lies_in(path, self._workspace):
            raise JobError(
                "Only folders of the workspace are deleted.",
                received=f"{path}, outside of {self._workspace}",
                advice="Delete it by hand if it is not needed any more.",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                return _renamed(path, self.folder / f"{job_id}.{int(now)}", job_id, now)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return self._discard_in_place(path, job_id, now)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"A job that is deleted is moved from {path} to {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Mend the rights of both folders, then delete it again.",
            ) from error

    def _discard_in_place(self, path: Path, job_id: str, now: float) -> Discarded:
        """Rename it on its own disk, and leave a link in the trash, so that it is found when the trash is emptied."""
        name = f"{job_id}.{int(now)}"
        hidden = path.absolute().with_name(f"{_HIDDEN}{name}")
        link = self.folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(hidden, self.folder.absolute()))  # it moves with the workspace
        path.rename(hidden)
        return Discarded(link, job_id, float(int(now)))

    def content(self) -> list[Discarded]:
        """Return what is in the trash, oldest first."""
        return sorted(self._found(), key=lambda each: (each.since, each.path))

    def empty(self, older_than: float) -> list[str]:
        """Remove from the disk what was discarded before a moment; return the ids. Others that empty it are waited for.

        What cannot be removed stays for the next time.
        """
        with self._emptying:
            removed = []
            for each in self.content():
                if each.since <= older_than:
                    removed += [each.job_id] if _is_removed(each.path, self._workspace) else []
            return removed

    def _found(self) -> Iterator[Discarded]:
        try:
            paths = list(self.folder.iterdir())
        except OSError:
            return
        for path in paths:
            job_id, _, since = path.name.rpartition(".")  # an id may have dots
            since = since.partition("-")[0]
            if job_id and since.isdecimal():
                yield Discarded(path, job_id, float(since))


def _is_removed(path: Path, workspace: Path) -> bool:
    """Remove a folder of the trash, or what a link of ours points at; return whether it is gone."""
    if path.is_symlink():
        hidden = Path(present_path(os.path.join(os.path.realpath(path.parent), path.readlink()), workspace))
        is_ours = hidden.name.startswith(_HIDDEN) and lies_in(hidden, workspace)
        if is_ours:
            shutil.rmtree(hidden, ignore_errors=True)
        if not os.path.lexists(hidden) or not is_ours:
            path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
    return not os.path.lexists(path)


def _renamed(path: Path, to: Path, job_id: str, now: float) -> Discarded:
    target, number = to, 0
    while os.path.lexists(target):
        number += 1
        target = to.with_name(f"{to.name}-{number}")
    path.rename(target)
    return Discarded(target, job_id, float(int(now)))
