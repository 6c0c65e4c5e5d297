"""Routes for the limits that an admin sets: concurrent jobs, memory, disk, and retention time of uploads."""

from __future__ import annotations

from fastapi import Response
from pydantic import Field

from ziggurat.api.requests import RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json
from ziggurat.server.dependencies import AdminUser, StudioDep
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["studio"])


class _Limits(RequestBody):
    values: dict[str, int | None] = Field(description="Name → number; null goes back to the default.")


@router.get("/limits", response_model=list[Json])
def limits(studio: StudioDep, _who: AdminUser) -> Response:
    """Return every number: ``name``, ``value``, ``default``, ``is_chosen``, ``least``, ``help``."""
    return answer(studio.limits.all())


@router.put("/limits", response_model=list[Json])
def choose_limits(studio: StudioDep, who: AdminUser, body: _Limits) -> Response:
    """Choose some of the numbers, all that are sent or none; they hold at once."""
    studio.limits.choose(body.values)
    studio.people.note(who, "settings.limits", "", **body.values)
    return answer(studio.limits.all())
