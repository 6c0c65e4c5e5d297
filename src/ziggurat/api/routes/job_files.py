"""Routes for the files of a job: log, messages, attempts, checkpoints, and an archive of them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from ziggurat.api.responses import answer, job_values
from ziggurat.api.schemas import CheckpointShape, MessageShape
from ziggurat.entities import Attempt
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.permissions import new_router
from ziggurat.workspace.job_outputs import LogPart
from ziggurat.workspace.studio.archives import archive

__all__ = ["ArchiveFormat", "router"]

router = new_router(prefix="/api/v1", tags=["jobs"])

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


@router.delete("/jobs/{job_id}/checkpoints/{name}", status_code=204)
def remove_checkpoint(studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Remove a checkpoint of a job that is not running."""
    studio.outputs.remove_checkpoint(job_id, name)
    studio.people.note(who, "checkpoint.delete", job_id, name=name)
    return Response(status_code=204)


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
