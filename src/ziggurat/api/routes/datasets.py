"""Routes for datasets: uploads, formats, creation, browsing, checks, export, and new versions."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, Literal

from fastapi import File, Path, Query, Request, Response, UploadFile
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.routes.jobs import ArchiveFormat
from ziggurat.api.schemas import JobPageShape, JobShape, Json, NewJobBody, PageQuery, RequestBody, SamplePageShape
from ziggurat.entities import Identity
from ziggurat.errors import UsageError
from ziggurat.operations import datasets as operations
from ziggurat.server.dependencies import StudioDep, TrainerUser, UploadUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router, require
from ziggurat.workspace import datasets
from ziggurat.workspace.job_query import JobQuery
from ziggurat.workspace.studio.uploads import Upload

__all__ = ["router", "uploads_router"]

router = new_router(prefix="/api/v1", tags=["datasets"])


_Pixels = Annotated[int | None, Field(ge=1, le=2**31)]


class _DatasetSource(RequestBody):
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
    order: datasets.SampleOrder = Field("row", description="By row, by name, or by size in the source.")


class _Picture(RequestBody):
    part: int = Field(0, ge=0, le=100)
    max_side_px: int = Field(1024, ge=8, le=4096, description="Longest side of what is sent.")
    original: bool = Field(False, description="Whether the file of the source is sent, where it is still there.")


class _Check(RequestBody):
    verify: bool = Field(False, description="Whether every record and file is read.")


class _DatasetExport(RequestBody):
    format: str = Field(description="Such as `coco`; `/dataset-formats` lists them.")
    options: dict[str, Any] = {}
    archive: ArchiveFormat = "zip"


@router.get("/dataset-formats", response_model=list[Json])
def formats(_who: ViewerUser) -> Response:
    """Return every format: ``name``, ``title``, ``kinds``, ``options``, ``exports`` and ``export_options``."""
    return answer(datasets.formats())


@router.post("/dataset-guesses", response_model=list[Json])
def guess(studio: StudioDep, _who: TrainerUser, body: _DatasetSource) -> Response:
    """Return what every importer thinks of a source: ``format``, ``confidence``, ``reason``, ``kind``, ``options``."""
    return answer(studio.datasets.guesses(str(studio.paths.allowed(body.source))))


@router.get("/datasets", response_model=JobPageShape)
def list_datasets(studio: StudioDep, _who: ViewerUser, query: Annotated[JobQuery, Query()]) -> Response:
    """Return some of the datasets that a filter leaves, as `/jobs` does; `kind` may not be given."""
    return answer(studio.jobs.page(query.of_kind("dataset").chosen()))


@router.post("/datasets", response_model=JobShape, status_code=201)
def create(studio: StudioDep, who: TrainerUser, body: NewJobBody) -> Response:
    """Put a dataset into the queue."""
    studio.paths.check_spec(body.spec)
    return answer(operations.create(studio, who, body.request()), 201)


@router.get("/datasets/{job_id}", response_model=Json)
def describe(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return what a dataset that is done is: ``kind``, ``splits``, ``classes``, ``columns``, ``problems``, …"""
    return answer(studio.datasets.describe(job_id))


@router.get("/datasets/{job_id}/samples", response_model=SamplePageShape)
def explore(studio: StudioDep, _who: ViewerUser, job_id: str, query: Annotated[_Samples, Query()]) -> Response:
    """Return some of the samples that a filter leaves; no image is read."""
    chosen = query.model_dump(exclude={"offset", "limit", "order"}, exclude_none=True)
    page, names = studio.datasets.explore(job_id, chosen, offset=query.offset, limit=query.limit, order=query.order)
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
    """Return an image of a sample as PNG, made smaller where it is larger; a dataset never changes, so it is kept.

    With ``original``, the answer is the unchanged source file of the sample, or the stored image if the file is
    missing, has changed or may not be read. The header ``Image-Origin`` says which: ``source`` or ``stored``.
    """
    if query.original:
        found = studio.datasets.original(job_id, split, row, query.part)
        return Response(found.content, media_type=found.media_type, headers=found.headers)
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
def export(studio: StudioDep, who: TrainerUser, job_id: str, body: _DatasetExport) -> Response:
    """Return a dataset in a format of others, as an archive whose ``info.json`` says what could not be written."""
    name = studio.jobs.get(job_id).name or job_id
    parts = operations.export(studio, who, job_id, body.format, body.archive, body.options)
    return download(parts, f"{name}-{body.format}", body.archive)


class _Named(RequestBody):
    name: str = Field("", max_length=200, description="Of the new version.")


class _Relabel(_Named):
    samples: list[str] = Field(min_length=1, description="As SPLIT/ROW or by key.")
    label: Any = Field(description="In the form that the kind says; a class also by its name.")


class _Exclude(_Named):
    samples: list[str] = []
    problem: str = Field("", description="Kind of problem; all samples that have it are left out as well.")
    reason: str = Field("", max_length=1000)


class _Corrections(_Named):
    labels: dict[str, Any] = Field({}, description="Sample, as SPLIT/ROW or by key → label, as in `relabel`.")
    excluded: list[str] = Field([], description="As SPLIT/ROW or by key.")
    reason: str = Field("", max_length=1000, description="Why samples are excluded.")


class _Classes(_Named):
    rename: list[tuple[str, str]] = []
    merge: list[tuple[list[str], str]] = Field([], description="Names, and the name that they become.")
    drop: list[str] = []
    keep: list[str] = []
    names: list[str] = Field([], max_length=65536, description="Of all classes, by number.")
    colours: list[tuple[int, int, int]] = Field([], description="R, G, B of each class in a mask, beside `names`.")


class _Merge(_Named):
    datasets: Annotated[list[str], JobName("dataset")] = Field(
        min_length=2, max_length=100, description="Ids or names."
    )


@router.get("/datasets/{job_id}/versions", response_model=list[Json])
def versions(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a dataset and all that it came from, newest first: ``id``, ``name``, ``folder``, ``changes``."""
    return answer(studio.datasets.versions(job_id))


add_operation(router, operations.create_again, shape=JobShape, status=201, body=_Named)
add_operation(router, operations.relabel, shape=JobShape, status=201, body=_Relabel)
add_operation(router, operations.exclude, shape=JobShape, status=201, body=_Exclude)
add_operation(router, operations.correct, shape=JobShape, status=201, body=_Corrections)
add_operation(router, operations.change_classes, shape=JobShape, status=201, body=_Classes)
add_operation(router, operations.merge, shape=JobShape, status=201, body=_Merge)


class _Map(RequestBody):
    features: Literal["", "backbone", "model", "own"] = Field(
        "",
        description="Of a backbone, of a trained model, or of the samples themselves; empty: what fits the dataset.",
    )
    model: Annotated[str, JobName("train")] = Field(
        "", max_length=200, description="Id or name of a training, for features of a model."
    )
    checkpoint: str = Field("", max_length=200, description="Of the model: a name, `best` or `latest`.")
    tsne: bool = Field(True, description="Whether samples are placed by t-SNE as well; needs the extra `maps`.")
    perplexity: float = Field(30.0, ge=2, le=500, allow_inf_nan=False, description="Neighbors that t-SNE keeps.")
    folds: int = Field(5, ge=0, le=20, description="To find label errors; 0 for none.")
    limit: int = Field(50_000, ge=0, lt=2**31, description="Samples at most, chosen at random; 0 for all.")
    seed: int = Field(0, ge=0, lt=2**32)


class _Similar(RequestBody):
    sample: str = Field(min_length=1, max_length=4096, description="As SPLIT/ROW or by key.")
    map: Annotated[str, JobName("embed")] = Field(
        "", max_length=200, description="Id or name of the map; empty for the newest."
    )
    limit: int = Field(24, ge=1, le=1000)


class _Findings(PageQuery):
    map: Annotated[str, JobName("embed")] = Field(
        "", max_length=200, description="Id or name of the map; empty for the newest."
    )


@router.get("/datasets/{job_id}/maps", response_model=list[JobShape])
def maps(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the jobs that make maps of a dataset, the newest first; the label and other lists are of those done."""
    studio.datasets.folder(job_id)
    return answer(studio.maps.of_dataset(job_id))


@router.get("/datasets/{job_id}/similar", response_model=Json)
def similar(studio: StudioDep, _who: ViewerUser, job_id: str, query: Annotated[_Similar, Query()]) -> Response:
    """Return the samples that are most similar to one: ``map``, ``features``, ``sample`` and ``samples``."""
    return answer(studio.maps.similar(job_id, query.sample, map_id=query.map, limit=query.limit))


@router.get("/datasets/{job_id}/findings/{which}", response_model=Json)
def map_findings(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    which: Literal["label-errors", "near-duplicates"],
    query: Annotated[_Findings, Query()],
) -> Response:
    """Return samples that a map makes doubtful: ``map``, ``source``, ``total`` and ``samples``, ranked."""
    found = studio.maps.findings(job_id, which, map_id=query.map, offset=query.offset, limit=query.limit)
    return answer(found)


add_operation(router, operations.create_map, shape=JobShape, status=201, body=_Map)


uploads_router = new_router(prefix="/api/v1", tags=["uploads"])

_SMALL_FILES_BYTES: Final = 64 << 20
_BLOCK_BYTES: Final = 1 << 20
_UploadId = Annotated[str, Query(description="Upload that they are added to; empty for a new one.")]
_SmallFiles = Annotated[Identity, require("trainer", "write", limit_bytes=_SMALL_FILES_BYTES)]

_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@uploads_router.post("/uploads", response_model=Upload, status_code=201, openapi_extra=_BODY)
async def upload(
    request: Request,
    studio: StudioDep,
    _who: UploadUser,
    name: Annotated[str, Query(min_length=1, max_length=4096, description="Of the file, with folders if any.")],
    id: Annotated[str, Query(description="Upload that the file is added to; empty for a new one.")] = "",  # noqa: A002
) -> Response:
    """Take in a file, whose content is the body; ``source`` of the answer is what the spec of a dataset names.

    An archive is unpacked when the dataset is made, and each of its members is checked then.
    """
    incoming = await run_in_threadpool(studio.uploads.add, name, id)
    with incoming:
        async for block in request.stream():
            await run_in_threadpool(incoming.write, block)
    return answer(await run_in_threadpool(incoming.result), 201)


@uploads_router.post("/uploads/files", response_model=Upload, status_code=201)
def upload_files(
    studio: StudioDep,
    _who: _SmallFiles,
    files: Annotated[list[UploadFile], File(max_length=1000, description="Each under its name, with folders if any.")],
    id: _UploadId = "",  # noqa: A002
) -> Response:
    """Take in many small files at once, as a form: a request for each would take longer than the files do."""
    upload_id = id
    for file in files:
        if not file.filename:
            raise UsageError("A file that was sent has no name.")
        with studio.uploads.add(file.filename, upload_id) as incoming:
            while block := file.file.read(_BLOCK_BYTES):
                incoming.write(block)
        upload_id = incoming.upload_id
    return answer(studio.uploads.describe(upload_id), 201)


@uploads_router.get("/uploads", response_model=list[Upload])
def uploads(studio: StudioDep, _who: TrainerUser) -> Response:
    """Return the uploads, the newest first. They are removed some days after they began."""
    return answer(studio.uploads.all())


@uploads_router.get("/uploads/{upload_id}", response_model=Upload)
def describe_upload(studio: StudioDep, _who: TrainerUser, upload_id: str) -> Response:
    """Return what came so far."""
    return answer(studio.uploads.describe(upload_id))


@uploads_router.delete("/uploads/{upload_id}", status_code=204)
def remove_upload(
    studio: StudioDep,
    _who: TrainerUser,
    upload_id: str,
    forever: Annotated[bool, Query(description="Remove it from the disk at once, also a deleted one.")] = False,
) -> Response:
    """Delete an upload; it can be restored for some days."""
    if forever:
        studio.uploads.remove(upload_id)
    else:
        studio.uploads.delete(upload_id)
    return Response(status_code=204)


@uploads_router.post("/uploads/{upload_id}/restore", response_model=Upload)
def restore_upload(studio: StudioDep, _who: TrainerUser, upload_id: str) -> Response:
    """Put a deleted upload back, by its id or name; it waits as long as a new one."""
    return answer(studio.uploads.restore(upload_id))
