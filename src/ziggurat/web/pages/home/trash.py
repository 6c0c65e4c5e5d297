"""Page of deleted jobs: put back, or removed for good."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Query, Request, Response

from ziggurat.errors import ZigguratError
from ziggurat.operations import jobs
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.flash import Outcome, Refused, flash_messages
from ziggurat.web.rendering import page, see_other

__all__ = ["router"]

router = new_router()

_Ids = Annotated[list[str], Form(max_length=1000)]
_SHOWN = 10


@router.get("/trash", include_in_schema=False)
def trash(
    request: Request, studio: StudioDep, _who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the page."""
    outcome = flash_messages(request).take(said) if said else None
    days = studio.settings.trash_days
    return page(request, "home/trash.html", deleted=studio.deleted.list(), outcome=outcome, days=days)


@router.post("/trash/restore", include_in_schema=False)
def restore(
    request: Request, studio: StudioDep, who: TrainerUser, ids: _Ids, back: Annotated[str, Form()] = ""
) -> Response:
    """Put deleted jobs back, and show the list that they are in."""
    restored, refused = [], []
    for job_id in dict.fromkeys(ids):
        try:
            restored.append(jobs.restore_job(studio, who, job_id))
        except ZigguratError as error:
            refused.append(Refused(job_id, job_id, f"{error.rule} {error.advice}".strip()))
    said = f"{restored[0].name} is back." if len(restored) == 1 else f"{len(restored)} jobs are back."
    text = said if restored else ""
    outcome = Outcome(text=text, refused=refused[:_SHOWN], refused_total=len(refused))
    path = "/trash" if back == "trash" else "/datasets" if restored and restored[0].kind == "dataset" else "/"
    return see_other(request, path, {"said": flash_messages(request).add(outcome)})


@router.post("/trash/remove", include_in_schema=False)
def remove(request: Request, studio: StudioDep, who: TrainerUser, ids: _Ids) -> Response:
    """Remove deleted jobs from the disk."""
    error: ZigguratError | None = None
    for job_id in dict.fromkeys(ids):
        try:
            jobs.delete_job(studio, who, job_id, forever=True)
        except ZigguratError as refused:
            error = refused
    outcome = Outcome(text="" if error else "Removed for good.", error=error.as_dict() if error else None)
    return see_other(request, "/trash", {"said": flash_messages(request).add(outcome)})
