"""Remarks on a workspace: what people should know of its place and of folders that are not listed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ziggurat.layout import JobFolder, job_folders

__all__ = ["relocation_remark", "unlisted_folders", "unlisted_remark"]


def relocation_remark(before: str, workspace: Path, *, copied: bool) -> str:
    """Return what is said of a workspace that is elsewhere than when it was last opened.

    Args:
        before: where it was.
        workspace: where it is.
        copied: whether a workspace is still there.
    """
    if copied:
        return (
            f"The workspace {workspace} is a copy of {before}, which is still there. "
            "The copy uses its own files; the original is not touched."
        )
    return f"The workspace was moved from {before} to {workspace}; its jobs and datasets are used from there."


def unlisted_folders(workspace: Path, known: Collection[str]) -> list[Path]:
    """Return the folders of a workspace that hold a job and are not in the database.

    Args:
        workspace: the folder of everything.
        known: ids of the jobs in the database.
    """
    return [each for each in job_folders(workspace) if each.name not in known and JobFolder(each).spec.is_file()]


def unlisted_remark(folders: Sequence[Path]) -> str:
    """Return what is said of folders that are not listed; empty where there are none."""
    if not folders:
        return ""
    what = "1 job folder is" if len(folders) == 1 else f"{len(folders)} job folders are"
    return f"{what} not listed: run `ziggurat reindex`."
