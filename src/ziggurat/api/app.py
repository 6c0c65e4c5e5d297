"""Application of the REST API alone, without pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI

from ziggurat.api.routes import ROUTERS as STUDIO_ROUTERS
from ziggurat.api.tensorboard import BoardStarts
from ziggurat.compat.digits import ROUTERS as DIGITS_ROUTERS
from ziggurat.server import application

__all__ = ["ROUTERS", "create_app"]

ROUTERS: Final = (
    "ziggurat.api.accounts:router",
    "ziggurat.api.accounts:tokens_router",
    "ziggurat.server.event_stream:router",
    "ziggurat.api.documents:router",
    "ziggurat.api.tensorboard:router",
    "ziggurat.api.tensorboard:proxy_router",
    "ziggurat.api.tensorboard:graph_router",
    *STUDIO_ROUTERS,
    *DIGITS_ROUTERS,
)
"""Where the routers are, as ``module:attribute``. Each comes from ``new_router``; the first route that fits answers."""


def create_app(studio: application.Studio, *, routers: Iterable[str] = ROUTERS, **options: Any) -> FastAPI:
    """Return the application.

    Args:
        studio: what the faces hold.
        routers: as ``module:attribute``; by default those of the API.
        options: as ``ziggurat.server.application.create_app`` takes them.

    Raises:
        UsageError: where the prefix is none.
        PluginError: where a route does not say who may use it.
    """
    app = application.create_app(studio, routers, **options)
    app.state.board_starts = BoardStarts()
    return app
