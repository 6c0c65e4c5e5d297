"""Folders of jobs in the database: relative to the workspace where they lie in it, absolute everywhere else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.layout import Places, job_folders, present_paths
from ziggurat.store.tables import jobs

__all__ = ["Folders", "make_relative"]


class Folders:
    """Turns folders of jobs into what the database holds, and back.

    Args:
        workspace: absolute path of the folder of everything; None where it is not known: then all stays as it is.
        places: where the workspace was before.
    """

    def __init__(self, workspace: Path | None = None, places: Places | None = None) -> None:
        self._workspace = None if workspace is None else Path(os.path.abspath(workspace))
        self._places = places or Places()

    def stored(self, folder: str) -> str:
        """Return a folder as the database holds it."""
        if self._workspace is None:
            return folder
        plain = Path(os.path.abspath(folder))
        inside = plain != self._workspace and plain.is_relative_to(self._workspace)
        return plain.relative_to(self._workspace).as_posix() if inside else folder

    def present(self, stored: str) -> str:
        """Return the absolute path of a folder that the database holds."""
        return stored if self._workspace is None or not stored else os.path.normpath(self._workspace / stored)

    def spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a spec in which paths into the workspace are those of now."""
        if self._workspace is None:
            return spec
        moved = {name: present_paths(value, self._workspace, self._places) for name, value in spec.items()}
        return moved | {name: spec[name] for name in ("name", "network") if name in spec}


def make_relative(connection: Connection, workspace: Path) -> str:
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
