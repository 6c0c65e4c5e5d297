"""Routes for published models, which other trainings start from by name."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from pydantic import Field

from ziggurat.api.requests import RequestBody, Text
from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.models import PublishedModel

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["models"])


class _Publish(RequestBody):
    name: str = Field(max_length=200, description="That no other published model has.")
    job: str = Field(max_length=200, description="Id of a training that has ended.")
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")
    notes: Text = Field("", description="What others should know of it.")


@router.get("/pretrained", response_model=list[Json])
def published(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the published models: ``name``, ``job``, ``checkpoint``, ``owner``, ``notes``, ``is_whole``, …"""
    return answer([_values(studio, each) for each in studio.published.all()])


@router.post("/pretrained", response_model=Json, status_code=201)
def publish(studio: StudioDep, who: TrainerUser, body: _Publish) -> Response:
    """Publish a checkpoint of a training; as long as it is, neither can be deleted."""
    made = studio.published.publish(body.job, body.name, checkpoint=body.checkpoint, notes=body.notes, owner=who.name)
    studio.people.note(who, "model.publish", made.job, name=made.name, checkpoint=made.checkpoint)
    return answer(_values(studio, made), 201)


@router.delete("/pretrained/{name:path}", status_code=204)
def withdraw(studio: StudioDep, who: TrainerUser, name: str) -> Response:
    """Take a model out of the list; its job and its files stay."""
    job_id = studio.published.get(name).job
    studio.published.withdraw(name)
    studio.people.note(who, "model.withdraw", job_id, name=name)
    return Response(status_code=204)


def _values(studio: Studio, model: PublishedModel) -> dict[str, Any]:
    return {**vars(model), "is_whole": studio.published.is_whole(model)}
