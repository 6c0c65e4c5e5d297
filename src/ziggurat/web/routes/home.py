"""Owns the first page: what runs, what waits and why, and the tables of everything that was made."""

from __future__ import annotations

from fastapi import Request, Response

from ziggurat.api.guard import new_router
from ziggurat.api.routes.access import Held, Viewer
from ziggurat.entities import JobFilter
from ziggurat.web.pages import page

__all__ = ["router"]

router = new_router()


@router.get("/", include_in_schema=False)
def home(request: Request, studio: Held, _who: Viewer) -> Response:
    """Return the first page."""
    return page(request, "home.html", jobs=studio.jobs.page(JobFilter()))
