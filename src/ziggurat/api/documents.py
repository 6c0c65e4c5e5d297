"""API documentation routes: the OpenAPI document, and a page of it that loads nothing from other hosts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from ziggurat.api.openapi import openapi_of
from ziggurat.api.operations_page import operations_page
from ziggurat.server.permissions import anyone, new_router, require

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["documentation"])


@router.get("/openapi.json", dependencies=[require("viewer", "read")], summary="The OpenAPI document")
def openapi(request: Request) -> JSONResponse:
    """Return the OpenAPI document of all routes."""
    return JSONResponse({**_document(request), "servers": [{"url": request.scope.get("root_path") or "/"}]})


@router.get("/docs", dependencies=[require("viewer", "read")], response_class=HTMLResponse, summary="This page")
def documentation(request: Request) -> HTMLResponse:
    """Return a page with every operation, who may use it, what it takes and what it answers."""
    return HTMLResponse(operations_page(_document(request), request.scope.get("root_path", "")))


@router.get("/docs.css", dependencies=[anyone()], include_in_schema=False)
def style() -> Response:
    """Return the style sheet of the page."""
    return Response(_style(), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _document(request: Request) -> dict[str, Any]:
    app = request.app
    if app.openapi_schema is None:
        app.openapi_schema = openapi_of(app)
    return app.openapi_schema


@cache
def _style() -> bytes:
    return (Path(__file__).parent / "static" / "docs.css").read_bytes()
