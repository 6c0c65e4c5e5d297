"""Routes for jobs: list, get, change, stop, pause, resume and delete, for one job or in bulk."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from ziggurat.api.requests import BulkBody, ChangeBody, PageQuery, RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.schemas import ActionShape, JobPageShape, JobShape, Json, RequestShape
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.job_query import PAGE_SIZE, JobQuery
from ziggurat.workspace.studio.jobs import act_on_jobs, clone_request

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["jobs"])


class _Reorder(RequestBody):
    before: str | None = Field(None, description="Id of the job that comes after it; null: last of the queue.")


class _Hyperparameter(RequestBody):
    name: str = Field(max_length=200, description="Such as `learning_rate`.")
    value: float = Field(allow_inf_nan=False)
    force: bool = Field(False, description="Also a learning rate of more than ten times the present one.")


@router.get("/jobs", response_model=JobPageShape)
def list_jobs(studio: StudioDep, _who: ViewerUser, query: Annotated[JobQuery, Query()]) -> Response:
    """Return some of the jobs that a filter leaves."""
    return answer(studio.jobs.page(query.chosen()))


@router.get("/queue", response_model=JobPageShape)
def queue(studio: StudioDep, _who: ViewerUser, part: Annotated[PageQuery, Query()]) -> Response:
    """Return jobs that wait, the next one first; ``reason`` of each says why it waits, ``total`` counts all."""
    return answer(studio.jobs.queue_page(part.limit, part.offset))


@router.get("/counts", response_model=dict[str, int])
def counts(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return state → number of jobs."""
    return answer(studio.jobs.counts())


@router.get("/compare", response_model=Json)
def compare(
    studio: StudioDep,
    _who: ViewerUser,
    job: Annotated[list[str], Query(min_length=1, max_length=100, description="Ids.")],
) -> Response:
    """Return where the specs of jobs differ (``differences``), and what their curves came to (``scalars``)."""
    return answer(studio.jobs.compare(job))


@router.post("/jobs/actions", response_model=ActionShape)
def act(studio: StudioDep, who: TrainerUser, body: BulkBody) -> Response:
    """Do the same with many jobs: with those of ``ids``, or with all that ``filter`` leaves."""
    if (body.ids is None) == (body.filter is None):
        raise UsageError("Jobs are chosen by `ids` or by `filter`.", received="both or neither")
    chosen = body.filter.chosen() if body.filter else body.ids or []
    change = body.change.change() if body.change else None
    results = act_on_jobs(studio.jobs, body.action, chosen, change=change, force=body.force, who=who.name)
    done = [each["id"] for each in results if each["done"]]
    studio.people.note(who, f"jobs.{body.action}", count=len(done), ids=done[:100])
    return answer({"results": results})


@router.get("/jobs/{job_id}", response_model=JobShape)
def get_job(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a job."""
    return answer(studio.jobs.get(job_id))


@router.patch("/jobs/{job_id}", response_model=JobShape)
def change_job(studio: StudioDep, who: TrainerUser, job_id: str, body: ChangeBody) -> Response:
    """Change name, notes, project, tags or priority."""
    job = studio.jobs.change(job_id, body.change())
    studio.people.note(who, "job.change", job_id, fields=sorted(body.model_fields_set))
    return answer(job)


@router.delete("/jobs/{job_id}", status_code=204)
def delete_job(studio: StudioDep, who: TrainerUser, job_id: str, force: bool = False) -> Response:
    """Delete a job and its folder; ``force`` ends it first where it runs."""
    studio.jobs.delete(job_id, force=force)
    studio.people.note(who, "job.delete", job_id, force=force)
    return Response(status_code=204)


@router.post("/jobs/{job_id}/stop", response_model=JobShape)
def stop_job(studio: StudioDep, who: TrainerUser, job_id: str, now: bool = False) -> Response:
    """Ask the worker to save and end, or take the job out of the queue; ``now`` kills the worker.

    ``reason`` says when a worker that does not end will be ended by force. Asked again, the next stage of that comes at
    once: SIGTERM, then SIGKILL. The job's folder stays, and it can be resumed from its newest checkpoint.
    """
    job = studio.jobs.stop(job_id, who=who.name, now=now)
    studio.people.note(who, "job.stop_now" if now else "job.stop", job_id)
    return answer(job)


@router.post("/jobs/{job_id}/pause", response_model=JobShape)
def pause_job(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Save, and free the device; ``resume`` goes on at the exact step."""
    job = studio.jobs.pause(job_id, who=who.name)
    studio.people.note(who, "job.pause", job_id)
    return answer(job)


@router.post("/jobs/{job_id}/resume", response_model=JobShape)
def resume_job(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Put a job that was stopped, paused or failed back into the queue."""
    job = studio.jobs.resume(job_id)
    studio.people.note(who, "job.resume", job_id)
    return answer(job)


@router.post("/jobs/{job_id}/retry", response_model=JobShape)
def retry_job(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Put a job that failed back into the queue."""
    job = studio.jobs.retry(job_id)
    studio.people.note(who, "job.retry", job_id)
    return answer(job)


@router.post("/jobs/{job_id}/reorder", response_model=JobPageShape)
def reorder_job(studio: StudioDep, who: TrainerUser, job_id: str, body: _Reorder) -> Response:
    """Place a job of the queue before another one, or last; return the beginning of the queue."""
    studio.jobs.reorder(job_id, body.before)
    studio.people.note(who, "job.reorder", job_id)
    return answer(studio.jobs.queue_page(PAGE_SIZE))


@router.post("/jobs/{job_id}/hyperparameters", response_model=JobShape)
def set_hyperparameter(studio: StudioDep, who: TrainerUser, job_id: str, body: _Hyperparameter) -> Response:
    """Set a hyperparameter of a running training; it acts within a tenth of an epoch."""
    studio.jobs.set_hyperparameter(job_id, body.name, body.value, force=body.force)
    studio.people.note(who, "job.hyperparameter", job_id, name=body.name, value=body.value)
    return answer(studio.jobs.get(job_id))


@router.delete("/jobs/{job_id}/hyperparameters/{name}", response_model=JobShape)
def unset_hyperparameter(studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Give a hyperparameter that was set by hand back to its schedule; it acts within a tenth of an epoch."""
    studio.jobs.unset_hyperparameter(job_id, name)
    studio.people.note(who, "job.hyperparameter", job_id, name=name, value=None)
    return answer(studio.jobs.get(job_id))


@router.get("/jobs/{job_id}/request", response_model=RequestShape)
def clone_job(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return what would make a job again, to be changed and sent to ``/trainings`` or ``/datasets``."""
    values = vars(clone_request(studio.jobs, job_id))
    return answer({name: value for name, value in values.items() if name != "needs"})
