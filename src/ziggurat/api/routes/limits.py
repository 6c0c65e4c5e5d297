"""Routes for the limits that an admin sets: concurrent jobs, memory, disk, and retention time of uploads."""

from __future__ import annotations

from fastapi import Response
from pydantic import Field

from ziggurat.api.guard import new_router
from ziggurat.api.routes.access import Admin, Held
from ziggurat.api.routes.answers import answer
from ziggurat.api.routes.asked import RequestBody
from ziggurat.api.routes.shapes import Json

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["studio"])


class _Limits(RequestBody):
    values: dict[str, int | None] = Field(description="Name → number; null goes back to the default.")


@router.get("/limits", response_model=list[Json])
def limits(studio: Held, _who: Admin) -> Response:
    """Return every number: ``name``, ``value``, ``default``, ``is_chosen``, ``least``, ``help``."""
    return answer(studio.limits.all())


@router.put("/limits", response_model=list[Json])
def choose_limits(studio: Held, who: Admin, body: _Limits) -> Response:
    """Choose some of the numbers, all that are sent or none; they hold at once."""
    studio.limits.choose(body.values)
    studio.people.note(who, "settings.limits", **body.values)
    return answer(studio.limits.all())
