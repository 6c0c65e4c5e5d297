"""Retraining on a new version: what its page offers, and the route that starts it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request, Response

from ziggurat.errors import ZigguratError
from ziggurat.operations import models
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.dataset.routes import version_page
from ziggurat.web.rendering import see_other

__all__ = ["router"]

router = new_router()

_Id = Annotated[str, Form(max_length=200)]


@router.post("/datasets/{job_id}/retrain", include_in_schema=False)
def retrain(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, model: _Id = "", evaluation: _Id = ""
) -> Response:
    """Repeat a training on this version, and show what changed, or what is still to be done before that is known."""
    try:
        found = models.retrain(studio, who, model, job_id, evaluation)
    except ZigguratError as error:
        return version_page(request, studio, job_id, evaluation, error)
    place = f"/evaluations/{found.former_evaluation.id}/differences"
    return see_other(request, place, {"other": found.evaluation.id})
