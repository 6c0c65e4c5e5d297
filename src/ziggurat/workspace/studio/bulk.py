"""Bulk actions on jobs: those named, or all that match a filter."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from ziggurat.entities import JobChange, JobFilter
from ziggurat.errors import UnknownNameError, ZigguratError
from ziggurat.workspace.studio.jobs import Jobs

__all__ = ["BULK_ACTIONS", "act_on_jobs", "chosen_ids"]

BULK_ACTIONS: Final = ("stop", "stop_now", "pause", "resume", "retry", "delete", "change")
_PAGE: Final = 500


def act_on_jobs(
    jobs: Jobs,
    action: str,
    chosen: Sequence[str] | JobFilter,
    *,
    change: JobChange | None = None,
    force: bool = False,
    who: str = "",
) -> list[dict[str, Any]]:
    """Do something with many jobs; where it fails with one, the others have it done all the same.

    Args:
        jobs: of every kind.
        action: a name in ``BULK_ACTIONS``.
        chosen: ids, or a filter; its page does not matter.
        change: for the action ``change``.
        force: for the action ``delete``: also jobs that run.
        who: name of who asks.

    Returns:
        ``id``, ``done``, and ``error`` (its JSON shape, or None) of each job.

    Raises:
        UnknownNameError: where there is no such action.
    """
    if action not in BULK_ACTIONS:
        raise UnknownNameError("action", action, BULK_ACTIONS)
    ids = chosen_ids(jobs, chosen) if isinstance(chosen, JobFilter) else list(dict.fromkeys(chosen))
    return [_act(jobs, action, job_id, change or JobChange(), force, who) for job_id in ids]


def chosen_ids(jobs: Jobs, chosen: JobFilter) -> list[str]:
    """Return the ids of all jobs that a filter leaves, whatever its page."""
    found: list[str] = []
    while True:
        page = jobs.page(dataclasses.replace(chosen, offset=len(found), limit=_PAGE))
        found += [job.id for job in page.jobs]
        if not page.jobs or len(found) >= page.total:
            return list(dict.fromkeys(found))


def _act(jobs: Jobs, action: str, job_id: str, change: JobChange, force: bool, who: str) -> dict[str, Any]:
    try:
        if action == "change":
            jobs.change(job_id, change)
        elif action == "delete":
            jobs.delete(job_id, force=force)
        elif action == "stop_now":
            jobs.stop(job_id, who, now=True)
        elif action in ("stop", "pause"):
            getattr(jobs, action)(job_id, who)
        else:
            getattr(jobs, action)(job_id)
    except ZigguratError as error:
        return {"id": job_id, "done": False, "error": error.as_dict()}
    return {"id": job_id, "done": True, "error": None}
