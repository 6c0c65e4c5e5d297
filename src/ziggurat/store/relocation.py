"""Databases and workspaces that belong together: relative job folders, and workspaces that were moved or copied."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.atomic import atomic_write_text
from ziggurat.entities import read_heartbeat
from ziggurat.errors import JobError
from ziggurat.layout import DATASETS_FOLDER, JOBS_FOLDER, PLACE_FILE, JobFolder, Places, job_folders
from ziggurat.store.database import Database, Folders
from ziggurat.store.tables import jobs, settings

__all__ = [
    "Relocation",
    "settle",
]


_SETTING: Final = "workspace_place"


@dataclass(frozen=True, kw_only=True)
class Relocation:
    """A workspace that is elsewhere than when it was last opened.

    Args:
        before: absolute path where it was.
        copied: whether a workspace is still there.
    """

    before: str
    copied: bool


def settle(database: Database, workspace: Path, *, take_over: bool = False) -> Relocation | None:
    """Bring a database and its workspace in line; return where the workspace was, if that was elsewhere.

    Args:
        database: of the studio; its jobs have the folders of this workspace from now on.
        workspace: absolute path; no other process serves it.
        take_over: a person says that a database outside of the workspace belongs to this one from now on.

    Raises:
        JobError: where the database belongs to another workspace, or folders of a copy are those of the original.
        StorageError: where the workspace cannot be written.
    """
    here, known = str(workspace), Places.of(workspace)
    with database.write() as connection:
        bound = str(_get(connection) or "")
        if not take_over and _is_other(bound, workspace) and not database.is_inside(workspace):
            raise _belongs_elsewhere(database.place, bound, here)
        absolute = _make_relative(connection, workspace)
        others = [each for each in (known.present, bound, absolute) if each and each != here]
        places = known
        for each in reversed(others):
            places = places.moved_to(each)
        places = places.moved_to(here)
        found = next((each for each in others if not _is_same(each, workspace)), None)
        copied = found is not None and _is_other(found, workspace)
        if found is not None and copied:
            _refuse_shared(workspace, Path(found))
            _forget_workers(workspace, Path(found))
            connection.execute(sa.update(jobs).values(worker=None))  # they are of the original's jobs, too
        if bound != here:
            connection.execute(sa.delete(settings).where(settings.c.name == _SETTING))
            connection.execute(sa.insert(settings).values(name=_SETTING, value=here))
    if places != known:
        atomic_write_text(workspace / PLACE_FILE, places.text(), "The place of the workspace")
    database.folders = Folders(workspace, places)
    return None if found is None else Relocation(before=found, copied=copied)


def _make_relative(connection: Connection, workspace: Path) -> str:
    """Make the folders of jobs relative that lie in a workspace, or lay in it before it was moved or copied.

    Releases before 0.2 stored absolute paths. Where a folder ends as one that is here does (``…/jobs/ID``, of the job
    ``ID``), what is above is taken as an earlier place of the workspace; jobs that lie elsewhere keep their path.

    Args:
        connection: may write.
        workspace: absolute path.

    Returns:
        The earlier place of most jobs; empty where there is none.
    """
    here = {(folder.parent.name, folder.name) for folder in job_folders(workspace)}
    rows = connection.execute(sa.select(jobs.c.key, jobs.c.id, jobs.c.folder).where(jobs.c.folder.startswith("/")))
    paths = {key: (job_id, Path(os.path.normpath(folder))) for key, job_id, folder in rows}
    places = Counter(
        path.parent.parent
        for job_id, path in paths.values()
        if path.name == job_id and (path.parent.name, path.name) in here and path.parent.parent != workspace
    )
    for key, (_, path) in paths.items():
        root = workspace if path.is_relative_to(workspace) else path.parent.parent
        if root in places or (root == workspace and path != workspace):
            folder = path.relative_to(root).as_posix()
            connection.execute(sa.update(jobs).where(jobs.c.key == key).values(folder=folder))
    return str(places.most_common(1)[0][0]) if places else ""


def _get(connection: Connection) -> Any:
    return connection.execute(sa.select(settings.c.value).where(settings.c.name == _SETTING)).scalar()


def _is_same(place: str, workspace: Path) -> bool:
    try:
        return os.path.samefile(place, workspace)
    except OSError:
        return False


def _is_other(place: str, workspace: Path) -> bool:
    """Return whether a workspace is at a place that is not this one."""
    if not place or _is_same(place, workspace):
        return False
    return any(os.path.lexists(os.path.join(place, name)) for name in (JOBS_FOLDER, DATASETS_FOLDER, PLACE_FILE))


def _forget_workers(workspace: Path, original: Path) -> None:
    """Remove heartbeats that were copied: they are of the original's workers, which must not be stopped from here."""
    for folder in job_folders(workspace):
        copied = read_heartbeat(JobFolder(folder).heartbeat)
        theirs = read_heartbeat(JobFolder(original / folder.relative_to(workspace)).heartbeat)
        if copied is not None and theirs is not None and (copied.pid, copied.host) == (theirs.pid, theirs.host):
            with suppress(OSError):
                JobFolder(folder).heartbeat.unlink()


def _refuse_shared(workspace: Path, original: Path) -> None:
    for name in (JOBS_FOLDER, DATASETS_FOLDER):
        if _is_same(str(original / name), workspace / name):
            raise JobError(
                f"`{name}` in {workspace} is a link to the one of {original}, and a copy of a workspace "
                "has its own folders.",
                advice=f"Copy the files too, as in `rsync --archive --copy-links`, or serve {original}.",
            )


def _belongs_elsewhere(database: str, owner: str, here: str) -> JobError:
    return JobError(
        f"A database belongs to one workspace: {database}.",
        received=f"it is that of {owner}, which is still there, and not of {here}",
        advice="Name another database. Or, where that workspace is given up: `ziggurat reindex` takes it for this one.",
    )
