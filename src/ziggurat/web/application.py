"""Owns the application that people see: the API with the pages, their static files and their error pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import Scope

from ziggurat.api.app import ROUTERS, create_app
from ziggurat.api.guard import OpenFiles
from ziggurat.web.errors import error_page
from ziggurat.web.routes import ROUTERS as PAGE_ROUTERS
from ziggurat.workspace.studio import Studio

__all__ = ["create_studio"]

_STATIC: Final = Path(__file__).parent / "static"
_COMPRESSION: Final = 5
"""zlib's level: higher ones cost the server more than they save the network."""


class _StaticFiles(OpenFiles):
    """Files whose addresses change with their content: a browser keeps them for a year."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_named = b"v=" in scope.get("query_string", b"") or path.startswith("vendor/parts/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_named else "no-cache"
        return response


def create_studio(studio: Studio, **options: Any) -> FastAPI:
    """Return the application with its pages.

    Args:
        studio: what the faces hold.
        options: as ``ziggurat.api.app.create_app`` takes them.

    Raises:
        UsageError: where the prefix is none.
    """
    app = create_app(studio, routers=(*ROUTERS, *PAGE_ROUTERS), **options)
    app.state.error_page = error_page
    app.add_middleware(GZipMiddleware, minimum_size=800, compresslevel=_COMPRESSION)
    app.mount("/static", _StaticFiles(directory=_STATIC), name="static")
    return app
