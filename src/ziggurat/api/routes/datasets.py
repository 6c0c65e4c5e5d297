"""Routes for datasets: detect a format, create, browse, check, and export."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import Field

from ziggurat.api.requests import NewJobBody, PageQuery, RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.routes.job_files import ArchiveFormat
from ziggurat.api.schemas import JobShape, Json, SamplePageShape
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.permissions import new_router
from ziggurat.workspace import datasets

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["datasets"])

_Pixels = Annotated[int | None, Field(ge=1, le=2**31)]


class _Source(RequestBody):
    source: str = Field(min_length=1, max_length=4096, description="Path of this machine, as an upload returns it.")


class _Samples(PageQuery):
    split: str | None = None
    class_name: str | None = None
    text: str | None = Field(None, description="With this in their key.")
    problem: str | None = Field(None, description="With a problem of this kind; `any` for any.")
    group: str | None = None
    min_width_px: _Pixels = None
    max_width_px: _Pixels = None
    min_height_px: _Pixels = None
    max_height_px: _Pixels = None


class _Picture(RequestBody):
    part: int = Field(0, ge=0, le=100)
    max_side_px: int = Field(1024, ge=8, le=4096, description="Longest side of what is sent.")


class _Check(RequestBody):
    verify: bool = Field(False, description="Whether every record and file is read.")


class _Export(RequestBody):
    format: str = Field(description="Such as `coco`; `/dataset-formats` lists them.")
    options: dict[str, Any] = {}
    archive: ArchiveFormat = "zip"


@router.get("/dataset-formats", response_model=list[Json])
def formats(_who: ViewerUser) -> Response:
    """Return every format: ``name``, ``title``, ``kinds``, ``options``, ``exports`` and ``export_options``."""
    return answer(datasets.formats())


@router.post("/dataset-guesses", response_model=list[Json])
def guess(studio: StudioDep, _who: TrainerUser, body: _Source) -> Response:
    """Return what every importer thinks of a source: ``format``, ``confidence``, ``reason``, ``kind``, ``options``."""
    return answer(studio.datasets.guesses(str(studio.paths.allowed(body.source))))


@router.post("/datasets", response_model=JobShape, status_code=201)
def create(studio: StudioDep, who: TrainerUser, body: NewJobBody) -> Response:
    """Put a dataset into the queue."""
    studio.paths.check_spec(body.spec)
    job = studio.datasets.create(body.request(), owner=who.name)
    studio.people.note(who, "dataset.create", job.id)
    return answer(job, 201)


@router.get("/datasets/{job_id}", response_model=Json)
def describe(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return what a dataset that is done is: ``kind``, ``splits``, ``classes``, ``columns``, ``problems``, …"""
    return answer(studio.datasets.describe(job_id))


@router.get("/datasets/{job_id}/samples", response_model=SamplePageShape)
def explore(studio: StudioDep, _who: ViewerUser, job_id: str, query: Annotated[_Samples, Query()]) -> Response:
    """Return some of the samples that a filter leaves; no image is read."""
    chosen = query.model_dump(exclude={"offset", "limit"}, exclude_none=True)
    page, names = studio.datasets.explore(job_id, chosen, offset=query.offset, limit=query.limit)
    return answer(page.as_json(names))


@router.get("/datasets/{job_id}/pictures/{split}/{row}", response_class=Response)
def picture(
    studio: StudioDep,
    _who: ViewerUser,
    request: Request,
    job_id: str,
    split: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    query: Annotated[_Picture, Query()],
) -> Response:
    """Return an image of a sample as PNG, made smaller where it is larger; a dataset never changes, so it is kept."""
    tag = hashlib.sha256(f"{job_id}/{split}/{row}/{query.part}/{query.max_side_px}".encode()).hexdigest()[:32]
    headers = {"ETag": f'"{tag}"', "Cache-Control": "private, max-age=86400"}
    if f'"{tag}"' in request.headers.get("if-none-match", ""):
        studio.datasets.folder(job_id)
        return Response(status_code=304, headers=headers)
    content = studio.datasets.picture(job_id, split, row, query.part, max_side_px=query.max_side_px)
    return Response(content, media_type="image/png", headers=headers)


@router.get("/datasets/{job_id}/problems", response_model=list[Json])
def problems(
    studio: StudioDep, _who: ViewerUser, job_id: str, query: Annotated[PageQuery, Query()], kind: str | None = None
) -> Response:
    """Return some of the problems that were found when it was made: ``key``, ``kind``, ``reason``, ``left_out``."""
    return answer(studio.datasets.problems(job_id, kind, offset=query.offset, limit=query.limit))


@router.get("/datasets/{job_id}/statistics", response_model=Json)
def statistics(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return counts by class and split, sizes, and distributions."""
    return answer(studio.datasets.statistics(job_id).as_json())


@router.post("/datasets/{job_id}/check", response_model=Json)
def check(studio: StudioDep, _who: TrainerUser, job_id: str, body: _Check) -> Response:
    """Return what may spoil a training: duplicates, leaks, classes, boxes, damage."""
    return answer(studio.datasets.check(job_id, verify=body.verify).as_json())


@router.post("/datasets/{job_id}/export", response_class=Response)
def export(studio: StudioDep, who: TrainerUser, job_id: str, body: _Export) -> Response:
    """Return a dataset in a format of others, as an archive whose ``info.json`` says what could not be written."""
    name = studio.jobs.get(job_id).name or job_id
    parts = studio.datasets.exported(job_id, body.format, body.archive, body.options)
    studio.people.note(who, "dataset.export", job_id, format=body.format)
    return download(parts, f"{name}-{body.format}", body.archive)
