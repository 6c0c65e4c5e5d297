"""Route of the OpenAPI document."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import JSONResponse

from ziggurat.server.openapi import openapi_of
from ziggurat.server.permissions import new_router, require

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["documentation"])


@router.get("/openapi.json", dependencies=[require("viewer", "read")], summary="The OpenAPI document")
def openapi(request: Request) -> JSONResponse:
    """Return the OpenAPI document of all routes."""
    return JSONResponse({**openapi_of(request.app), "servers": [{"url": request.scope.get("root_path") or "/"}]})
