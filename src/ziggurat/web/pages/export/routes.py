"""Export page of a model, with its form actions: export, delete an export, publish, withdraw."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Form, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from ziggurat.errors import ZigguratError
from ziggurat.operations import models
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.export.view import ARCHIVES, FIRST_TYPED, field_of, take_away
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()


class _ExportForm(BaseModel):
    format: str = ""
    export_checkpoint: str = ""
    preprocessing: Literal["inside", "beside"] = "inside"


class _PublishForm(BaseModel):
    name: str = ""
    publish_checkpoint: str = ""
    notes: str = ""


@router.get("/models/{job_id}/take-away", include_in_schema=False)
def show(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    publish_checkpoint: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return the page, or the list of exports as it is now."""
    if is_part(request, "take-exports"):
        return part(request, "export/exports.html", view=take_away(studio, job_id))
    return _page(request, studio, job_id, typed={**FIRST_TYPED, "publish_checkpoint": publish_checkpoint})


@router.post("/models/{job_id}/take-away/export", include_in_schema=False)
def export(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, form: Annotated[_ExportForm, Form()]
) -> Response:
    """Ask for an export, and show its progress; the request does not wait."""
    try:
        models.start_export(studio, who, job_id, form.format, form.preprocessing, form.export_checkpoint)
    except ZigguratError as error:
        return _refused(request, studio, job_id, "export", error, **form.model_dump())
    return see_other(request, f"/models/{job_id}/take-away")


@router.post("/models/{job_id}/take-away/exports/{name}/delete", include_in_schema=False)
def remove(request: Request, studio: StudioDep, who: TrainerUser, job_id: str, name: str) -> Response:
    """Delete an export that is not under way."""
    try:
        models.remove_export(studio, who, job_id, name)
    except ZigguratError as error:  # it was deleted in another tab, or is under way
        return _refused(request, studio, job_id, "delete", error)
    return see_other(request, f"/models/{job_id}/take-away")


@router.post("/models/{job_id}/take-away/exports/{name}/server", include_in_schema=False)
def serve(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    name: str,
    action: Annotated[Literal["start", "stop"], Form()],
) -> Response:
    """Start or stop the server of an export."""
    try:
        (models.start_serving if action == "start" else models.stop_serving)(studio, who, job_id, name)
    except ZigguratError as error:  # too many run, or the export was deleted in another tab
        return _refused(request, studio, job_id, "serve", error)
    return see_other(request, f"/models/{job_id}/take-away#serve-{name}")


@router.get("/models/{job_id}/take-away/exports/{name}/{file}", include_in_schema=False)
def text(studio: StudioDep, _who: ViewerUser, job_id: str, name: str, file: str) -> Response:
    """Return the model card or the program of an export, as plain text."""
    headers = {"X-Content-Type-Options": "nosniff"}
    return PlainTextResponse(studio.exports.text(job_id, name, file), headers=headers)


@router.post("/models/{job_id}/take-away/publish", include_in_schema=False)
def publish(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, form: Annotated[_PublishForm, Form()]
) -> Response:
    """Publish a checkpoint under a name."""
    try:
        models.publish(studio, who, job_id, form.name, form.publish_checkpoint, form.notes)
    except ZigguratError as error:
        return _refused(request, studio, job_id, "publish", error, **form.model_dump())
    return see_other(request, f"/models/{job_id}/take-away")


@router.post("/models/{job_id}/take-away/withdraw", include_in_schema=False)
def withdraw(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, name: Annotated[str, Form()] = ""
) -> Response:
    """Take a published model out of the list."""
    try:
        models.withdraw(studio, who, name)
    except ZigguratError as error:  # it was withdrawn in another tab
        return _refused(request, studio, job_id, "withdraw", error)
    return see_other(request, f"/models/{job_id}/take-away")


def _page(
    request: Request, studio: Studio, job_id: str, status: int = 200, *, typed: Any = FIRST_TYPED, **said: Any
) -> Response:
    shown = {"problems": {}, **said}
    view = take_away(studio, job_id)
    topics = (f"job:{job_id}",)
    return page(request, "export/page.html", status, topics=topics, view=view, archives=ARCHIVES, typed=typed, **shown)


def _refused(
    request: Request, studio: Studio, job_id: str, action: str, error: ZigguratError, **typed: str
) -> Response:
    """Show the page again with what was typed, and what is wrong with it."""
    field = field_of(error, action)
    said = {"problems": {field: str(error)}} if field else {"error": error}
    return _page(request, studio, job_id, status_of(error), typed={**FIRST_TYPED, **typed}, **said)
