"""DIGITS routes for changing jobs: names and notes, groups, abort and delete."""

from __future__ import annotations

from fastapi import Response

from ziggurat.api.digits.forms import Posted
from ziggurat.entities import Identity, JobChange
from ziggurat.errors import JobError, UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.http_errors import HTTPError, status_of
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import act_on_jobs

__all__ = ["router"]

router = new_router(tags=["digits"])


@router.put("/jobs/{job_id}", response_class=Response)
def edit(studio: StudioDep, who: TrainerUser, job_id: str, form: Posted) -> Response:
    """Change ``job_name`` or ``job_notes``, each by itself."""
    name, notes = form.values.get("job_name"), form.values.get("job_notes")
    if name is None and notes is None:
        raise UsageError("An edit has `job_name` or `job_notes`.", received="neither")
    studio.jobs.change(job_id, JobChange(name=name, notes=notes))
    studio.people.note(who, "job.change", job_id)
    return _said(f"{'Name' if name is not None else 'Notes'} updated.")


@router.delete("/jobs/{job_id}", response_class=Response)
@router.delete("/datasets/{job_id}", response_class=Response)
@router.delete("/models/{job_id}", response_class=Response)
def delete(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Delete a job; a dataset that a model needs, or a job that runs, is refused by 403."""
    _delete(studio, who, job_id)
    return _said("Job deleted.")


@router.delete("/jobs", response_class=Response)
def delete_many(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Delete the jobs of ``job_ids[]``, models first, so that their datasets can go as well."""
    jobs = [studio.jobs.get(job_id) for job_id in form.ids()]
    for job in sorted(jobs, key=lambda each: each.kind == "dataset"):
        _delete(studio, who, job.id)
    return _said("Jobs deleted.")


@router.post("/jobs/{job_id}/abort", response_class=Response)
@router.post("/datasets/{job_id}/abort", response_class=Response)
@router.post("/models/{job_id}/abort", response_class=Response)
def abort(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Save and end a job; what it wrote so far can be used, and the studio can go on with it."""
    studio.jobs.stop(job_id, who=who.name)
    studio.people.note(who, "job.stop", job_id)
    return _said("Job aborted.")


@router.post("/abort_jobs", response_class=Response)
def abort_many(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """End the jobs of ``job_ids[]``; the answer is 403 where one of them does not run any more."""
    results = act_on_jobs(studio.jobs, "stop", form.ids(), who=who.name)
    studio.people.note(who, "jobs.stop", count=sum(each["done"] for each in results))
    failed = [each["id"] for each in results if not each["done"]]
    return _said(f"Not aborted: {', '.join(failed)}.", 403) if failed else _said("Jobs aborted.")


@router.post("/group", response_class=Response)
def group(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Put the jobs of ``job_ids[]`` into the project ``group_name``; blank or ``Ungrouped`` takes them out."""
    name = form.values.get("group_name", "").strip()
    change = JobChange(project="" if name == "Ungrouped" else name)
    for job_id in form.ids():
        studio.jobs.change(job_id, change)
        studio.people.note(who, "job.change", job_id)
    return _said("Jobs grouped.")


def _delete(studio: Studio, who: Identity, job_id: str) -> None:
    try:
        studio.jobs.delete(job_id)
    except JobError as error:
        raise HTTPError(error, 404 if status_of(error) == 404 else 403) from None
    studio.people.note(who, "job.delete", job_id)


def _said(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/plain")
