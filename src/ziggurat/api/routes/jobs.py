"""Routes for jobs: list, change, stop, pause, resume and delete, alone or in bulk; their curves and files."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import numpy as np
from fastapi import Query, Response
from pydantic import Field

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer, job_values
from ziggurat.api.schemas import (
    ActionShape,
    BulkBody,
    ChangeBody,
    CheckpointShape,
    CurveShape,
    JobPageShape,
    JobShape,
    Json,
    MessageShape,
    PageQuery,
    RequestBody,
    RequestShape,
)
from ziggurat.entities import Attempt, Curve, Mark
from ziggurat.errors import UsageError
from ziggurat.operations import jobs
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.workspace.job_outputs import LogPart
from ziggurat.workspace.job_query import JobQuery
from ziggurat.workspace.studio.archives import archive
from ziggurat.workspace.studio.deleted import DeletedItem
from ziggurat.workspace.studio.jobs import clone_request

__all__ = ["ArchiveFormat", "curves_router", "router"]

router = new_router(prefix="/api/v1", tags=["jobs"])


class _Reorder(RequestBody):
    before: Annotated[str | None, JobName()] = Field(
        None, description="Id or name of the job that comes after it; null: last of the queue."
    )


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


@router.get("/trash", response_model=list[DeletedItem])
def trash(studio: StudioDep, who: ViewerUser) -> Response:
    """Return what was deleted and can be restored, the newest first.

    ``kind`` is that of a job, or ``weights``, ``upload``, ``view`` or ``preset``; these are restored by routes of their
    own. Views and presets are those of the user who asks.
    """
    return answer(studio.deleted.list(who.name))


@router.get("/counts", response_model=dict[str, int])
def counts(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return state → number of jobs."""
    return answer(studio.jobs.counts())


@router.get("/compare", response_model=Json)
def compare(
    studio: StudioDep,
    _who: ViewerUser,
    job: Annotated[list[str], JobName(), Query(min_length=1, max_length=100, description="Ids or names.")],
) -> Response:
    """Return where the specs of jobs differ (``differences``), and what their curves came to (``scalars``)."""
    return answer(studio.jobs.compare(job))


@router.post("/jobs/actions", response_model=ActionShape)
def act(studio: StudioDep, who: TrainerUser, body: BulkBody) -> Response:
    """Do the same with many jobs: with those of ``ids``, or with all that ``filter`` leaves."""
    if (body.ids is None) == (body.filter is None):
        raise UsageError(
            "Both `ids` and `filter` are given: choose jobs by one of them."
            if body.ids is not None
            else "Neither `ids` nor `filter` is given: choose jobs by one of them."
        )
    chosen = body.filter.chosen() if body.filter else body.ids or []
    change = body.change.change() if body.change else None
    return answer({"results": jobs.act(studio, who, body.action, chosen, change=change, force=body.force)})


@router.get("/jobs/{job_id}", response_model=JobShape)
def get_job(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a job."""
    return answer(studio.next_steps.job(job_id))


@router.patch("/jobs/{job_id}", response_model=JobShape)
def change_job(studio: StudioDep, who: TrainerUser, job_id: str, body: ChangeBody) -> Response:
    """Change name, notes, project, tags or priority."""
    return answer(jobs.change_job(studio, who, job_id, body.change(), fields=list(body.model_fields_set)))


add_operation(router, jobs.delete_job, status=204)
add_operation(router, jobs.restore_job, shape=JobShape)
add_operation(router, jobs.empty_trash, shape=list[str])
add_operation(router, jobs.stop_job, shape=JobShape)
add_operation(router, jobs.pause_job, shape=JobShape)
add_operation(router, jobs.resume_job, shape=JobShape)
add_operation(router, jobs.retry_job, shape=JobShape)
add_operation(router, jobs.reorder_job, shape=JobPageShape, body=_Reorder)
add_operation(router, jobs.set_hyperparameter, shape=JobShape, body=_Hyperparameter)
add_operation(router, jobs.unset_hyperparameter, shape=JobShape)
add_operation(router, jobs.remove_checkpoint, status=204)


@router.get("/jobs/{job_id}/request", response_model=RequestShape)
def clone_job(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return what would make a job again, to be changed and sent to ``/trainings``, ``/datasets`` or ``/programs``."""
    values = vars(clone_request(studio.jobs, job_id))
    return answer({name: value for name, value in values.items() if name not in ("needs", "files")})


curves_router = new_router(prefix="/api/v1", tags=["curves"])

_Since = Annotated[int, Query(ge=-1, lt=2**63, description="Only points after this step.")]
_Most = Annotated[int, Query(ge=5, le=100_000, description="Points of each at most; minima and maxima stay.")]
_Digits = Annotated[
    int | None,
    Query(
        ge=1, le=17, description="Significant digits of the values, and times to a hundredth of a second; none for all."
    ),
]


@curves_router.get("/jobs/{job_id}/tags", response_model=list[str])
def tags(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the names of a job's curves."""
    return answer(studio.curves.tags(job_id))


@curves_router.get("/jobs/{job_id}/marks", response_model=list[Mark])
def marks(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the moments that explain a job's curves: interventions, new attempts, a divergence."""
    return answer(studio.jobs.marks(job_id))


@curves_router.get("/jobs/{job_id}/curves", response_model=list[CurveShape])
def curves(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    tag: Annotated[list[str], Query(description="Names of curves; none for all.")] = [],  # noqa: B006 - never changed
    since_step: _Since = -1,
    max_points: _Most = 2000,
    digits: _Digits = None,
) -> Response:
    """Return curves of a job; with ``digits`` a third as long, which a chart cannot tell from the whole."""
    found = studio.curves.some(job_id, tag, since_step=since_step, max_points=max_points)
    return answer(found if digits is None else [_shortened(curve, digits) for curve in found])


def _shortened(curve: Curve, digits: int) -> Curve:
    values = np.array([float(f"{value:.{digits}g}") for value in curve.values.tolist()], np.float64)
    return dataclasses.replace(curve, values=values, times=np.round(curve.times, 2))


ArchiveFormat = Literal["tar", "tar.gz", "tar.bz2", "zip"]


@router.get("/jobs/{job_id}/log", response_model=LogPart)
def log(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    at_most_bytes: Annotated[int, Query(ge=1, le=16 << 20)] = 64 << 10,
    before: Annotated[int | None, Query(ge=0, le=1 << 62)] = None,
) -> Response:
    """Return the end of the worker's log, or the part of it that ends at the offset ``before``.

    ``start`` of an answer, given as ``before``, asks for the part in front of it; at 0 there is none.
    """
    return answer(studio.outputs.log(job_id, at_most_bytes=at_most_bytes, before=before))


@router.get("/jobs/{job_id}/messages", response_model=MessageShape)
def messages(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    level: Annotated[list[Literal["info", "warning", "error"]], Query()] = [],  # noqa: B006 - never changed
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Return the newest of what the worker said to people, the oldest of them first."""
    return answer({"messages": studio.jobs.messages(job_id, levels=level, limit=limit)})


@router.get("/jobs/{job_id}/attempts", response_model=list[Attempt])
def attempts(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the attempts of a job, the oldest first."""
    return answer(studio.jobs.attempts(job_id))


@router.get("/jobs/{job_id}/checkpoints", response_model=list[CheckpointShape])
def checkpoints(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the checkpoints of a job, the oldest step first."""
    return answer(studio.jobs.checkpoints(job_id))


@router.get("/jobs/{job_id}/download", response_class=Response)
def download_job(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    format: Annotated[ArchiveFormat, Query()] = "tar.gz",  # noqa: A002 - the word that people use
    checkpoint: str = "",
) -> Response:
    """Return a job's files as an archive with an ``info.json``, of all its checkpoints or of one."""
    job = studio.jobs.get(job_id)
    files = list(studio.models.files(job_id, checkpoint))
    info = {**job_values(job), "checkpoint": checkpoint}
    return download(archive(format, files, info, now=studio.clock()), job.name or job.id, format)
