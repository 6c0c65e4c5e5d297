"""Operations on jobs: stop, pause, resume, retry, change, delete, their place in the queue, their hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.entities import Job, JobChange, JobFilter, JobPage
from ziggurat.operations.use_case import Call, use_case
from ziggurat.workspace.job_query import PAGE_SIZE
from ziggurat.workspace.studio.jobs import act_on_jobs

__all__ = [
    "act",
    "change_job",
    "delete_job",
    "empty_trash",
    "pause_job",
    "remove_checkpoint",
    "reorder_job",
    "restore_job",
    "resume_job",
    "retry_job",
    "set_hyperparameter",
    "stop_job",
    "unset_hyperparameter",
]

_NAMED_IDS = 100
"""So many ids of changed jobs stand in an entry of the audit log."""


@use_case("job.act")
def act(
    call: Call,
    action: str,
    chosen: Sequence[str] | JobFilter,
    *,
    change: JobChange | None = None,
    force: bool = False,
    does: Callable[[str], object] | None = None,
    is_one: bool = False,
) -> list[dict[str, Any]]:
    """Do the same with many jobs; where it fails with one, the others have it done all the same.

    Args:
        call: by whom.
        action: a name in ``BULK_ACTIONS``; with ``does`` what the audit log calls it.
        chosen: ids, or a filter; its page does not matter.
        change: for the action ``change``.
        force: for the action ``delete``: also jobs that run.
        does: what is done with the job of an id, instead of the action; it raises a ``ZigguratError`` if it fails.
        is_one: the audit log has an entry of that job instead of one of several.

    Returns:
        ``id``, ``done``, and ``error`` (its JSON shape, or None) of each job.
    """
    results = act_on_jobs(call.studio.jobs, action, chosen, change=change, force=force, who=call.who.name, does=does)
    done = [each["id"] for each in results if each["done"]]
    if not is_one:
        call.note(action=f"jobs.{action}", count=len(done), ids=done[:_NAMED_IDS])
    elif done:
        call.note(done[0], action=f"job.{action}", **({"force": force} if force else {}))
    return results


@use_case("job.change")
def change_job(call: Call, job_id: str, change: JobChange, *, fields: Sequence[str] = ()) -> Job:
    """Change name, notes, project, tags or priority.

    Args:
        call: by whom.
        job_id: of the job.
        change: what changes.
        fields: names of what changes, for the audit log.
    """
    job = call.studio.jobs.change(job_id, change)
    said: dict[str, Any] = {"fields": sorted(fields)} if fields else {}
    call.note(job_id, **said)
    return job


@use_case("job.delete")
def delete_job(call: Call, job_id: str, force: bool = False, forever: bool = False) -> None:
    """Delete a job, which can be restored for some days. ``force`` ends it first where it runs; ``forever`` removes its
    folder from the disk at once, also that of a deleted one.
    """
    if forever and not call.studio.jobs.some([job_id]):
        call.studio.deleted.remove(job_id)
    else:
        call.studio.jobs.delete(job_id, force=force, forever=forever)
    further: dict[str, Any] = {"forever": True} if forever else {}
    call.note(job_id, force=force, **further)


@use_case("job.restore")
def restore_job(call: Call, job_id: str) -> Job:
    """Put a deleted job back as it was, with its folder."""
    job = call.studio.deleted.restore(job_id)
    call.note(job.id)
    return job


@use_case("trash.empty")
def empty_trash(call: Call) -> list[str]:
    """Remove everything that was deleted from the disk now, and return the ids; of saved items, only those of the user
    who asks.
    """
    removed = call.studio.deleted.empty(call.who.name)
    call.note(count=len(removed), ids=removed[:_NAMED_IDS])
    return removed


@use_case("job.stop")
def stop_job(call: Call, job_id: str, now: bool = False) -> Job:
    """Ask the worker to save and end, or take the job out of the queue; ``now`` kills the worker.

    ``reason`` says when a worker that does not end will be ended by force. Asked again, the next stage of that comes at
    once: SIGTERM, then SIGKILL. The job's folder stays, and it can be resumed from its newest checkpoint.
    """
    job = call.studio.jobs.stop(job_id, who=call.who.name, now=now)
    call.note(job_id, action="job.stop_now" if now else "job.stop")
    return job


@use_case("job.pause")
def pause_job(call: Call, job_id: str) -> Job:
    """Save, and free the device; ``resume`` goes on with the same state and data."""
    job = call.studio.jobs.pause(job_id, who=call.who.name)
    call.note(job_id)
    return job


@use_case("job.resume")
def resume_job(call: Call, job_id: str) -> Job:
    """Put a job that was stopped, paused or failed back into the queue."""
    job = call.studio.jobs.resume(job_id)
    call.note(job_id)
    return job


@use_case("job.retry")
def retry_job(call: Call, job_id: str) -> Job:
    """Put a job that failed back into the queue."""
    job = call.studio.jobs.retry(job_id)
    call.note(job_id)
    return job


@use_case("job.reorder")
def reorder_job(
    call: Call, job_id: str, before: str | None = None, *, priority: int | None = None, is_placed: bool = True
) -> JobPage:
    """Place a job of the queue before another one, or last; return the beginning of the queue."""
    if priority is not None:
        call.studio.jobs.change(job_id, JobChange(priority=priority))
    if is_placed:
        call.studio.jobs.reorder(job_id, before)
    call.note(job_id)
    return call.studio.jobs.queue_page(PAGE_SIZE)


@use_case("job.set_hyperparameter")
def set_hyperparameter(call: Call, job_id: str, name: str, value: float, force: bool = False) -> Job:
    """Set a hyperparameter of a running training; it acts within a tenth of an epoch."""
    call.studio.jobs.set_hyperparameter(job_id, name, value, force=force)
    call.note(job_id, name=name, value=value)
    return call.studio.jobs.get(job_id)


@use_case("job.unset_hyperparameter")
def unset_hyperparameter(call: Call, job_id: str, name: str) -> Job:
    """Give a hyperparameter that was set by hand back to its schedule; it acts within a tenth of an epoch."""
    call.studio.jobs.unset_hyperparameter(job_id, name)
    call.note(job_id, name=name, value=None)
    return call.studio.jobs.get(job_id)


@use_case("checkpoint.delete")
def remove_checkpoint(call: Call, job_id: str, name: str) -> None:
    """Remove a checkpoint of a job that is not running."""
    call.studio.outputs.remove_checkpoint(job_id, name)
    call.note(job_id, name=name)
