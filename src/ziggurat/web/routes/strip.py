"""Owns the part of every page that shows this machine, asked for again when something changes."""

from __future__ import annotations

from fastapi import Request, Response

from ziggurat.api.guard import new_router
from ziggurat.api.routes.access import Viewer
from ziggurat.web.pages import part
from ziggurat.web.strip import strip_of

__all__ = ["router"]

router = new_router()


@router.get("/parts/strip", include_in_schema=False)
def strip(request: Request, _who: Viewer) -> Response:
    """Return the strip."""
    return part(request, "parts/strip.html", strip=strip_of(request))
