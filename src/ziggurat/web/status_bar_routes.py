"""Routes that belong to no single page: the machine status bar and the favicon."""

from __future__ import annotations

from pathlib import Path

from fastapi import Request, Response
from starlette.responses import FileResponse

from ziggurat.server.dependencies import ViewerUser
from ziggurat.server.permissions import anyone, new_router
from ziggurat.web.rendering import part
from ziggurat.web.status_bar import status_bar_of

__all__ = ["router"]

router = new_router()


@router.get("/parts/strip", include_in_schema=False)
def strip(request: Request, _who: ViewerUser) -> Response:
    """Return the strip."""
    return part(request, "parts/strip.html", strip=status_bar_of(request))


@router.get("/favicon.ico", dependencies=[anyone()], include_in_schema=False)
def icon() -> Response:
    """Return the icon; browsers ask here on pages that name none."""
    path = Path(__file__).parent / "static" / "icon.svg"
    return FileResponse(path, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})
