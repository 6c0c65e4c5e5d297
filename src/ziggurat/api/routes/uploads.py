"""Routes for uploads: files that wait in the workspace to become a dataset."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import File, Query, Request, Response, UploadFile
from starlette.concurrency import run_in_threadpool

from ziggurat.api.responses import answer
from ziggurat.entities import Identity
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser, UploadUser
from ziggurat.server.permissions import new_router, require
from ziggurat.workspace.studio.uploads import Upload

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["uploads"])

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


@router.post("/uploads", response_model=Upload, status_code=201, openapi_extra=_BODY)
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


@router.post("/uploads/files", response_model=Upload, status_code=201)
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
            raise UsageError("Each file that is sent has a name.", received="one without")
        with studio.uploads.add(file.filename, upload_id) as incoming:
            while block := file.file.read(_BLOCK_BYTES):
                incoming.write(block)
        upload_id = incoming.upload_id
    return answer(studio.uploads.describe(upload_id), 201)


@router.get("/uploads/{upload_id}", response_model=Upload)
def describe_upload(studio: StudioDep, _who: TrainerUser, upload_id: str) -> Response:
    """Return what came so far."""
    return answer(studio.uploads.describe(upload_id))


@router.delete("/uploads/{upload_id}", status_code=204)
def remove_upload(studio: StudioDep, _who: TrainerUser, upload_id: str) -> Response:
    """Delete an upload."""
    studio.uploads.remove(upload_id)
    return Response(status_code=204)
