"""Page of the REST API: every operation, who may use it, what it takes and what it returns."""

from __future__ import annotations

from fastapi import Request, Response

from ziggurat.entities import ROLES, SCOPES
from ziggurat.server.dependencies import ViewerUser
from ziggurat.server.openapi import openapi_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.rest_api.view import groups_of, schemas_of
from ziggurat.web.rendering import page

__all__ = ["router"]

router = new_router()


@router.get("/api/v1/docs", include_in_schema=False)
def rest_api(request: Request, _who: ViewerUser) -> Response:
    """Return the page; it works without scripts."""
    document = openapi_of(request.app)
    return page(
        request,
        "rest_api/page.html",
        groups=groups_of(document),
        schemas=schemas_of(document),
        roles=ROLES,
        scopes=SCOPES,
    )
