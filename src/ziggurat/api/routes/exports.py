"""Routes for background exports: start one, get its state, download it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field

from ziggurat.api.requests import RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.routes.job_files import ArchiveFormat
from ziggurat.api.schemas import Json
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["models"])


class _Export(RequestBody):
    format: str = Field(max_length=100, description="Such as `onnx`.")
    preprocessing: Literal["inside", "beside"] = "inside"
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")


@router.get("/models/{job_id}/exports", response_model=list[Json])
def exports(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the exports of a model, newest first: ``name``, ``state``, ``result`` with its ``parity``, ``error``, …"""
    return answer(studio.exports.of_job(job_id))


@router.post("/models/{job_id}/exports", response_model=Json, status_code=202)
def start(studio: StudioDep, who: TrainerUser, job_id: str, body: _Export) -> Response:
    """Ask for an export; it is made while nobody waits, and one that is there already is returned as it is."""
    asked = studio.exports.start(job_id, body.format, preprocessing=body.preprocessing, checkpoint=body.checkpoint)
    studio.people.note(who, "model.export", job_id, format=body.format)
    return answer(asked, 202)


@router.get("/models/{job_id}/exports/{name}", response_model=Json)
def export(studio: StudioDep, _who: ViewerUser, job_id: str, name: str) -> Response:
    """Return how an export is: ``state`` is ``waiting``, ``running``, ``done``, ``failed`` or ``interrupted``."""
    return answer(studio.exports.get(job_id, name))


@router.get("/models/{job_id}/exports/{name}/download", response_class=Response)
def fetch(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    name: str,
    format: Annotated[ArchiveFormat, Query()] = "zip",  # noqa: A002 - the word that people use
) -> Response:
    """Return an export that is done, as an archive whose ``info.json`` proves that it gives the same."""
    found = studio.exports.get(job_id, name)
    parts = studio.exports.archive(job_id, name, format)
    return download(parts, f"{studio.jobs.get(job_id).name or job_id}-{found.format}", format)


@router.delete("/models/{job_id}/exports/{name}", status_code=204)
def remove(studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Delete an export that is not under way."""
    studio.exports.remove(job_id, name)
    studio.people.note(who, "export.delete", job_id, name=name)
    return Response(status_code=204)
