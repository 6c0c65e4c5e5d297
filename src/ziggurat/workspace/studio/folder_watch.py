"""Watch of a workspace for jobs and datasets that the shell creates while the studio runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ziggurat.errors import StorageError, ZigguratError
from ziggurat.jobs import EventBus
from ziggurat.layout import DATASETS_FOLDER, JOBS_FOLDER, JobFolder, job_folders
from ziggurat.records.manifest import MANIFEST_NAME
from ziggurat.store import JobOnDisk, Store
from ziggurat.workspace.job_folders import holds_job

__all__ = ["NEVER_BEGUN", "FolderWatch", "is_of_shell"]

NEVER_BEGUN: Final = "it was created in the shell, and never started"
"""Reason of a job that was never executed and never queued in a studio."""

_LOG: Final = logging.getLogger(__name__)
_OF_STUDIO: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4,8}")
_STARTS_WITHIN_S: Final = 60.0
_TICK_S: Final = 2.0


def is_of_shell(folder: Path) -> bool:
    """Return whether the shell named a job folder: the studio names its own by their ids, before it lists them."""
    return _OF_STUDIO.fullmatch(folder.name) is None


class FolderWatch:
    """Adds jobs of the shell to the store; without changes, a look costs two system calls.

    Args:
        workspace: folder of everything.
        store: of the studio.
        read_job: reads a job folder.
        bus: announces new jobs to open pages.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        workspace: Path,
        store: Store,
        read_job: Callable[[Path], JobOnDisk],
        bus: EventBus,
        clock: Callable[[], float],
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._read_job = read_job
        self._bus = bus
        self._clock = clock
        self._stamp: tuple[int, ...] = ()
        self._pending: list[Path] = []
        self._refused: dict[Path, int] = {}

    def look(self) -> list[str]:
        """Add new jobs to the store and return their ids; a job that has not started yet is added later."""
        stamp = tuple(_stamp(self._workspace / name) for name in (JOBS_FOLDER, DATASETS_FOLDER))
        if stamp != self._stamp:
            known = self._store.jobs.ids()
            found = job_folders(self._workspace)
            self._pending = [each for each in found if each.name not in known and is_of_shell(each)]
            # A folder that is added within the resolution of the file system's clock does not change the time.
            self._stamp = stamp if self._clock() - max(stamp) / 1e9 > _TICK_S else ()
        taken = [each for each in self._pending if self._take_in(each)]
        self._pending = [each for each in self._pending if each not in taken]
        for folder in taken:
            self._bus.publish("jobs", "added", folder.name)
        return [folder.name for folder in taken]

    def _take_in(self, folder: Path) -> bool:
        """Return whether the job of a folder was added; a damaged one is read again when its spec changes."""
        written = _stamp(JobFolder(folder).spec) or _stamp(folder / MANIFEST_NAME)
        if not holds_job(folder) or self._refused.get(folder) == written:
            return False
        try:
            on_disk = self._read_job(folder)
        except Exception as error:  # files of others: one damaged folder must not hide the rest
            return self._refuse(folder, written, error)
        is_new = on_disk.state == "stopped" and on_disk.fields.get("reason") == NEVER_BEGUN
        if is_new and self._clock() - on_disk.job.created < _STARTS_WITHIN_S:
            return False
        try:
            self._store.take_in(on_disk)
        except StorageError:  # of the database, which may be available again at the next look
            raise
        except ZigguratError as error:
            return self._refuse(folder, written, error)
        return True

    def _refuse(self, folder: Path, written: int, error: Exception) -> bool:
        _LOG.warning("the job in %s cannot be listed: %s", folder, error)
        self._refused[folder] = written
        return False


def _stamp(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
